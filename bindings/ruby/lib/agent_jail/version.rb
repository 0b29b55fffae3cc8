# SPDX-License-Identifier: MIT
# frozen_string_literal: true

module AgentJail
  VERSION = "0.2.0"
end
