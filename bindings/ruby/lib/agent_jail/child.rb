# SPDX-License-Identifier: MIT
# frozen_string_literal: true

module AgentJail
  # The forked child's side of a run: from the fork to the end of its process.
  class Child
    # An exit status that says that we failed ourselves, as sysexits.h has it.
    EXIT_SOFTWARE = 70
    TRAPPED = %w[HUP INT QUIT TERM USR1 USR2 ALRM CHLD WINCH].freeze
    FIRST_FD = 3
    # Linux's, which Ruby's own constants lack.
    O_PATH = 0o10000000
    F_DUPFD_CLOEXEC = 1030
    # Address space that is given back when the block has failed, so that there is memory to say so.
    RESERVE_BYTES = 4 << 20

    # In the full jail this is a process that Ruby did not fork itself; forking again would abort it.
    module NoFork
      def _fork
        raise NotImplementedError, "Ruby cannot fork in a jail with namespaces; spawn works"
      end
    end

    # A log file of the parent's is closed in the child. Its path is opened again, in case it is granted;
    # else nothing is written, instead of an error for each line.
    module ClosedLogs
      F_GETFL = 3

      def write(message)
        super if !@dev.is_a?(IO) || open_here? || reopen
      end

      private

      def open_here?
        (@dev.fcntl(F_GETFL) & O_PATH).zero?
      rescue SystemCallError, IOError
        false
      end

      def reopen
        return false if @filename.nil?

        @parents = @dev # not let go of: it would close its number
        @dev = File.open(@filename, File::WRONLY | File::APPEND | File::CREAT).tap { |file| file.sync = true }
      rescue SystemCallError
        false
      end
    end

    def initialize(call, options)
      @call = call
      @options = options
    end

    # Calls the block and ends the process, whatever happens.
    def run(block)
      numbers = open_fds
      keep_own_fds(numbers)
      @reserve = String.new(capacity: RESERVE_BYTES)
      without_collecting do
        @child = Library.call(:brig_call_enter, @call, 0)
        Handle.enter_jail
        hold(numbers)
      end
      TRAPPED.each { |name| Signal.trap(name, "DEFAULT") }
      Process.singleton_class.prepend(NoFork) if @options[:namespaces]
      ::Logger::LogDevice.prepend(ClosedLogs) if defined?(::Logger::LogDevice)
      # The fork was made where nothing may interrupt; the block may be.
      Thread.handle_interrupt(Object => :immediate) { work(block) }
      flush
      Library.call(:brig_call_leave, @child)
    rescue Exception => e # rubocop:disable Lint/RescueException
      @reserve.clear
      Report.new(e).send_to(@child) if @child
      Library.call(:brig_call_leave, @child) if @child
    ensure
      exit!(EXIT_SOFTWARE)
    end

    private

    def open_fds
      Dir.children("/proc/self/fd").map(&:to_i).sort
    end

    # Ruby's threads and signals need descriptors that it has just made for this process.
    def keep_own_fds(numbers)
      numbers.each do |number|
        next if number < FIRST_FD || !Library.reserved_fd?(number)

        Library.call(:brig_call_keep_fd, @call, number, nil)
      end
    end

    # An IO of the parent's that is garbage here would close its number, which is free by now and may be
    # the one that we have just opened.
    def without_collecting
      was_off = GC.disable
      yield
    ensure
      GC.enable unless was_off
    end

    # Keeps the numbers taken that fds of the parent had: with an fd that can be used for nothing. Else a
    # log or connection of the parent's would write into the next file that the block opens.
    def hold(numbers)
      nothing = IO.for_fd(IO.sysopen("/", O_PATH), autoclose: false)
      numbers.each do |number|
        got = nothing.fcntl(F_DUPFD_CLOEXEC, number)
        IO.for_fd(got).close if got != number # it was kept, or is this very one
      end
      nothing.close unless numbers.include?(nothing.fileno)
    end

    def work(block)
      done = false
      give(encode(block.call))
      done = true
    rescue SystemExit => e
      flush
      exit!(e.status)
    rescue Exception => e # rubocop:disable Lint/RescueException
      done = true
      @reserve.clear
      Report.new(e).send_to(@child)
    ensure
      leave_early unless done
    end

    # break, return and throw get here; they would go on in the parent's frames.
    def leave_early
      jump = LocalJumpError.new("the block was left by break, return or throw; " \
                                "next gives its value")
      Report.new(jump).send_to(@child)
      flush
      Library.call(:brig_call_leave, @child)
    end

    def encode(value)
      @options[:marshal] ? Marshal.dump(value) : Plain.dump(value)
    rescue Plain::Problem => e
      raise ResultError, e.message
    rescue TypeError => e
      raise ResultError, "the value cannot be marshalled: #{e.message}"
    end

    # Writes the value where the parent finds it. More than allowed is noted by the library.
    def give(bytes)
      room = Library.call(:brig_call_reserve, @child, bytes.bytesize)
      return if room.null?

      room[0, bytes.bytesize] = bytes
    end

    def flush
      [$stdout, $stderr].each do |stream|
        stream.flush
      rescue StandardError
        nil # closed, or whatever the block put in its place
      end
    end
  end
  private_constant :Child

  # What an exception says about itself, for the parent.
  class Report
    ACCESS = { unknown: 0, read: 1, write: 2, execute: 3, connect: 4, bind: 5 }.freeze
    # The functions of Ruby that exceptions name, as far as they tell what was tried.
    TRIED = {
      /\A(dir_s_(mkdir|rmdir)|apply2files|rb_file_s_(rename|symlink|link|truncate|mkfifo))/ => :write,
      /\A(dir_|rb_readlink|rb_file_s_(size|ftype))/ => :read
    }.freeze

    def initialize(error)
      @error = error
      @message = error.message.to_s
      @fields = { class_name: error.class.name || error.class.to_s, message: @message,
                  backtrace: (error.backtrace || []).join("\n") }
      @numbers = { out_of_memory: error.is_a?(NoMemoryError) ? 1 : 0, sys_errno: 0, access: 0 }
      describe
    end

    def send_to(child)
      failure = Library::CallFailure.malloc(Fiddle::RUBY_FREE)
      failure.size = Library::CallFailure.size
      failure.reserved = 0
      # Kept here, as the struct has their addresses only.
      texts = @fields.transform_values { |text| c_string(text) }
      %i[class_name message backtrace path address syscall].each do |name|
        failure.public_send("#{name}=", texts[name] ? Fiddle::Pointer[texts[name]] : nil)
      end
      @numbers.each { |name, value| failure.public_send("#{name}=", value) }
      Library.call(:brig_call_fail, child, failure)
    end

    private

    def describe
      case @error
      when SystemCallError then describe_system_call
      when ThreadError
        return unless @message.include?("can't create Thread")

        @numbers[:sys_errno] = Errno::EAGAIN::Errno
        @fields[:syscall] = "clone"
      end
    end

    # Ruby tells the call and its subject in the message only: "Permission denied @ rb_sysopen - /x",
    # "Permission denied - connect(2) for 127.0.0.1:80".
    def describe_system_call
      @numbers[:sys_errno] = @error.errno
      @numbers[:out_of_memory] = 1 if @error.is_a?(Errno::ENOMEM)
      case @message
      when / - (connect|bind)\(2\) for "?([^"]+)"? port (\d+)/ then describe_address($1, $2, $3)
      when / - (connect|bind)\(2\) for ([^ ]+):(\d+)\z/ then describe_address($1, $2, $3)
      when / - (connect|bind)\(2\) for (\/.*)\z/m then describe_path($2, $1.to_sym)
      when / - socket\(2\)/ then @fields[:syscall] = "socket"
      when / - fork\(2\)/ then @fields[:syscall] = "clone"
      when / @ (\w+) - (.+)\z/m then describe_path(first_path($2), tried($1))
      when / - (\/.+)\z/m then describe_path($1, :unknown)
      end
    end

    def describe_address(call, host, port)
      @fields[:address] = host.include?(":") ? "[#{host.delete('[]')}]:#{port}" : "#{host}:#{port}"
      @numbers[:access] = ACCESS.fetch(call.to_sym)
    end

    def describe_path(path, access)
      @fields[:path] = File.expand_path(path.delete("\0"))
      @numbers[:access] = ACCESS.fetch(access)
    rescue StandardError
      nil # no directory to expand it from
    end

    # Of a call with two: "(/a, /b)".
    def first_path(subject)
      subject[/\A\((.*), .*\)\z/m, 1] || subject
    end

    def tried(function)
      TRIED.each { |pattern, access| return access if pattern.match?(function) }
      :unknown
    end

    def c_string(text)
      "#{text.b.gsub("\0".b) { '\0' }}\0"
    end
  end
  private_constant :Report
end
