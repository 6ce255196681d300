package rules_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain lets more tests run at once than there are processors: those that are parallel start
// servers, and wait until they have ended.
func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "24")
	os.Exit(m.Run())
}
