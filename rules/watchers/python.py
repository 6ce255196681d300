import fcntl, os, select, termios, threading, time


def end_with_stdin(grace=5, patience=60):
    """Exits when the client has closed stdin, whatever other threads do: grace seconds after all
    requests were read and no answer is held up, or patience seconds after the end of stdin."""
    try:
        wire = os.dup(0)  # a server may replace its stdin
    except OSError:
        return  # started without one
    gone = select.POLLHUP | getattr(select, "POLLRDHUP", 0)
    stdin, stdout = select.poll(), select.poll()
    stdin.register(wire, gone)
    stdout.register(1, select.POLLOUT)

    def busy():  # requests are unread, or answers are not taken
        return any(fcntl.ioctl(wire, termios.FIONREAD, bytes(4))) or not stdout.poll(0)

    def watch():
        try:
            while not any(events & gone for _, events in stdin.poll(1000)):
                time.sleep(0.1)
            end = quiet = time.monotonic()
            while time.monotonic() < min(quiet + grace, end + patience):
                if busy():
                    quiet = time.monotonic()
                time.sleep(0.1)
        finally:
            os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


end_with_stdin()
