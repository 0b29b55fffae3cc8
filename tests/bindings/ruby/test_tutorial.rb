# SPDX-License-Identifier: MIT
# frozen_string_literal: true

# The tutorial does what it says: its blocks are run one after the other, and what they print is what
# their lines `#>` say.
require_relative "tap"

class DocumentsTest < Case
  # Runs the blocks of a document one after the other; says how many there were.
  def run_blocks(path)
    blocks = File.read(File.join(ROOT, path), encoding: "UTF-8").scan(/^<!-- run -->\n```ruby\n(.*?)^```$/m).flatten
    ENV["TMPDIR"] = @scratch
    names = TOPLEVEL_BINDING.dup
    blocks.each do |block|
      printed, = capture_io { names.eval(block, path) }
      promised = block.lines(chomp: true).grep(/\A#> /) { |line| line[3..] }
      assert_equal promised, printed.lines(chomp: true)
    end
    blocks.size
  ensure
    ENV.delete("TMPDIR")
  end

  def test_every_block_of_the_tutorial_prints_what_it_says
    assert_operator run_blocks("docs/tutorial-ruby.md"), :>, 6
  end
end

run_tests
