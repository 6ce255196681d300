package main

import (
	"fmt"
	"path"
	"strings"
)

// launchdAgent writes a property list (launchd.plist(5)). launchd discards an agent's output unless it names a
// file, and expands no ~. An XML comment may not contain two hyphens, so none names a flag.
func launchdAgent(j job) (string, error) {
	if !strings.HasPrefix(j.home, "/") || !graphic(j.home) {
		return "", &problem{what: fmt.Sprintf("launchd needs a file for reap's output, and the home directory is %q", j.home), hint: "set HOME"}
	}
	const text = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!--
  A launchd agent that terminates leaked MCP servers every 15 minutes, while you are logged in.

  install:  save this as ~/Library/LaunchAgents/mcpdoctor.reap.plist (mkdir -p ~/Library/LaunchAgents), then
            launchctl bootstrap gui/$(id -u) ~/Library/LaunchAgents/mcpdoctor.reap.plist
  look:     launchctl print gui/$(id -u)/mcpdoctor.reap
            cat ~/Library/Logs/mcpdoctor.reap.log
  remove:   launchctl bootout gui/$(id -u)/mcpdoctor.reap
            rm ~/Library/LaunchAgents/mcpdoctor.reap.plist
-->
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>mcpdoctor.reap</string>
  <key>ProgramArguments</key>
  <array>
    <string>%[1]s</string>
    <string>reap</string>
    <string>--settle</string>
    <string>20s</string>
    <string>--older-than</string>
    <string>%[2]s</string>
  </array>
  <key>StartInterval</key>
  <integer>%[3]d</integer>
  <key>StandardOutPath</key>
  <string>%[4]s</string>
  <key>StandardErrorPath</key>
  <string>%[4]s</string>
</dict>
</plist>
`
	log := path.Join(j.home, "Library/Logs/mcpdoctor.reap.log")
	return fmt.Sprintf(text, inXML.Replace(j.program), j.olderThan, int(every.Seconds()), inXML.Replace(log)), nil
}

// inXML writes text between two tags.
var inXML = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
