#!/bin/sh
# Installs a systemd user timer that terminates leaked MCP servers, at least {{.OlderThan}} old, every 15 minutes.
#
# install:  mcpdoctor schedule --older-than {{.OlderThan}} systemd | sh
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
ExecStart={{.Program}} reap --settle 20s --older-than {{.OlderThan}}
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
