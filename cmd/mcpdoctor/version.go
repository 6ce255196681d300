package main

import "runtime/debug"

// release is set at link time by `make release`.
var release string

// version is the release, else what the build knows: the module's version, which has the commit of a checkout; else
// "devel".
func version() string {
	info, ok := debug.ReadBuildInfo()
	switch {
	case release != "":
		return release
	case !ok || info.Main.Version == "" || info.Main.Version == "(devel)":
		return "devel"
	}
	return info.Main.Version
}
