package procfs

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// A signal that comes while descriptors are listed cuts no list short. Go's scheduler sends them at any
// time, and a holder that is missed is a living client.
func TestListsAreWhole(t *testing.T) {
	const many = 300
	for range many {
		f, err := os.Open("/dev/null")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				unix.Kill(os.Getpid(), unix.SIGURG) //nolint:errcheck // to oneself
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	proc, err := OpenAt(unix.AT_FDCWD, "/proc", unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(proc)
	for range 3000 {
		h, err := OpenPID(proc, os.Getpid(), make([]byte, 8<<10))
		if err != nil {
			t.Fatal(err)
		}
		f, err := h.OpenFDs()
		if err != nil {
			t.Fatal(err)
		}
		n := len(f.Names)
		f.Close()
		h.Close()
		if n < many {
			t.Fatalf("%d descriptors are listed of more than %d", n, many)
		}
	}
}
