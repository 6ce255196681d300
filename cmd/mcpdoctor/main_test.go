package main

import (
	"flag"
	"os"
	"runtime"
	"strconv"
	"testing"
)

// playAs is the environment variable that makes the test binary play another part than that of the
// tests, so that a test can start the real command, or a client, as a process of its own.
const playAs = "MCPDOCTOR_TEST_AS"

// parts are the parts that it can play.
var parts = map[string]func(){"mcpdoctor": main}

// afterwards are called when all tests have ended.
var afterwards []func()

func TestMain(m *testing.M) {
	if play, ok := parts[os.Getenv(playAs)]; ok {
		play()
		return
	}
	// The lab waits, mostly: for servers to grow old, to settle and to end. Twice as many of its
	// scenarios as there are processors (the usual number) still leave each enough of one.
	flag.Parse()
	if given := flag.Lookup("test.parallel"); given.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		_ = flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0)))
	}
	code := m.Run()
	for _, f := range afterwards {
		f()
	}
	os.Exit(code)
}
