# SPDX-License-Identifier: MIT
# frozen_string_literal: true

# The tutorial does what it says: its blocks are run one after the other, and what they print is what
# their lines `#>` say.
require_relative "tap"

class TutorialTest < Case
  def test_every_block_prints_what_it_says
    blocks = File.read(File.join(ROOT, "docs/tutorial-ruby.md")).scan(/^<!-- run -->\n```ruby\n(.*?)^```$/m).flatten
    assert_operator blocks.size, :>, 6
    ENV["TMPDIR"] = @scratch
    names = TOPLEVEL_BINDING.dup
    blocks.each do |block|
      printed, = capture_io { names.eval(block, "tutorial") }
      promised = block.lines(chomp: true).grep(/\A#> /) { |line| line[3..] }
      assert_equal promised, printed.lines(chomp: true)
    end
  ensure
    ENV.delete("TMPDIR")
  end
end

run_tests
