package process

import (
	"mcpdoctor/rules/command"
	"strings"
)

// Helpers that no name tells, since their programs are everybody's: browsers under automation and
// language servers.

// helper names what a server's helper is, and how surely it is one.
func helper(c *command.Command, words []string) (name string, sure Confidence) {
	program := command.FoldName(words[0])
	if browsers[program] {
		return "browser", automated(words)
	}
	if ofSerena(words[0]) || ofSerena(c.Path) {
		return "serena language server", Certain
	}
	if c.Runtime == "java" && len(c.Launchers) == 0 { // a class path
		for _, w := range words[:min(len(words), searched)] {
			if ofSerena(w) {
				return "serena language server", Certain
			}
		}
	}
	return "", ""
}

// ofSerena tells that a path lies where serena keeps its language servers.
func ofSerena(path string) bool {
	return strings.Contains(path, ".serena/language_servers/") || strings.Contains(path, `.serena\language_servers\`)
}

var browsers = map[string]bool{
	"brave": true, "brave browser": true, "brave-browser": true, "chrome": true, "chrome-headless-shell": true, "chromium": true,
	"chromium helper": true, "chromium-browser": true, "firefox": true, "google chrome": true, "google chrome for testing": true,
	"google chrome for testing helper": true, "google chrome helper": true, "google-chrome": true, "google-chrome-stable": true,
	"headless_shell": true, "microsoft edge": true, "microsoft-edge": true, "minibrowser": true, "msedge": true, "pw_run": true,
}

// Marks of the profiles and of the switches with which servers start browsers.
var (
	serverProfiles     = []string{"ms-playwright-mcp", "ms-playwright/mcp-", `ms-playwright\mcp-`, ".cache/chrome-devtools-mcp/", "chrome-devtools-mcp-"}
	automationProfiles = []string{"playwright_chromiumdev_profile-", "playwright_firefoxdev_profile-", "playwright_webkitdev_profile-", "puppeteer_dev_chrome_profile-", "puppeteer_dev_firefox_profile-"}
)

// automated tells how surely a browser is under automation. A person's own browser may listen for a
// debugger too, so that this alone says nothing.
func automated(words []string) Confidence {
	debugged, automation := false, false
	for i, w := range words {
		if i == 0 && len(words) > 1 {
			continue
		}
		switch {
		case containsAny(w, serverProfiles):
			return Certain
		case containsAny(w, automationProfiles):
			return Likely
		}
		debugged = debugged || strings.HasPrefix(w, "--remote-debugging-p") || strings.HasPrefix(w, "-juggler")
		automation = automation || w == "--enable-automation" || w == "--headless" || strings.HasPrefix(w, "--headless=")
	}
	if debugged && automation {
		return Possible
	}
	return ""
}

func containsAny(s string, marks []string) bool {
	if len(s) < 16 {
		return false
	}
	for _, m := range marks {
		if strings.Contains(s, m) {
			return true
		}
	}
	return false
}
