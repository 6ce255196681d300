package main

import (
	"fmt"
	"strings"
)

// systemdScript writes a shell script that installs a user service and its timer.
//
// The timer does not catch up on missed runs (Persistent=): leaked processes do not outlive the boot. It needs no
// random delay: systemd moves it within a minute (AccuracySec=).
func systemdScript(j job) (string, error) {
	program, err := systemdProgram(j.program)
	if err != nil {
		return "", err
	}
	const text = `#!/bin/sh
# Installs a systemd user timer that terminates leaked MCP servers, at least %[2]s old, every 15 minutes.
#
# install:  mcpdoctor schedule --older-than %[2]s systemd | sh
# look:     systemctl --user list-timers mcpdoctor-reap.timer
#           journalctl --user -u mcpdoctor-reap.service
# remove:   systemctl --user disable --now mcpdoctor-reap.timer
#           rm "${XDG_CONFIG_HOME:-$HOME/.config}/systemd/user"/mcpdoctor-reap.*
#           systemctl --user daemon-reload
#
# It runs while you are logged in, and always after "loginctl enable-linger".
set -eu
systemctl --user show-environment >/dev/null # without a user manager, stop before anything is written
units="${XDG_CONFIG_HOME:-$HOME/.config}/systemd/user"
mkdir -p "$units"

cat >"$units/mcpdoctor-reap.service" <<'END'
[Unit]
Description=Terminate leaked MCP servers

# No sandbox (PrivateTmp=, PrivateUsers=, PrivatePIDs=, ProtectProc=, ProtectHome= ...): any of them would hide
# processes, their files or their owners from mcpdoctor, which keeps what it cannot see.
# Exit code 1, something survived or was refused, is a failure: the unit shows it until a run succeeds.
[Service]
Type=oneshot
ExecStart=%[1]s reap --settle 20s --older-than %[2]s
# A run takes seconds. One that hangs would keep the timer from starting the next.
TimeoutStartSec=5min
END

cat >"$units/mcpdoctor-reap.timer" <<'END'
[Unit]
Description=Terminate leaked MCP servers every 15 minutes

[Timer]
OnCalendar=*:7/15

[Install]
WantedBy=timers.target
END

systemctl --user daemon-reload
systemctl --user enable --now mcpdoctor-reap.timer
`
	return fmt.Sprintf(text, program, j.olderThan), nil
}

// systemdProgram quotes the path of a program for ExecStart= (systemd.service(5), command lines).
// Specifiers (%) are replaced in it; variables ($) are not, in the first word, where $$ stays $$. There
// systemd refuses quotes and backslashes, however they are escaped (string_is_safe in load-fragment.c).
func systemdProgram(path string) (string, error) {
	if strings.ContainsAny(path, `"'\`) {
		return "", &problem{
			what: "systemd cannot start a program with a quote or backslash in its path: " + path,
			hint: "link to it from another path, and call it by that path",
		}
	}
	if !strings.ContainsFunc(path, special) {
		return path, nil
	}
	return `"` + strings.ReplaceAll(path, "%", "%%") + `"`, nil
}
