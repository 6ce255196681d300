package process

import (
	"slices"
	"strings"

	"mcpdoctor/rules/catalog"
	"mcpdoctor/rules/command"
)

// Helpers whose programs do not only belong to servers: browsers under automation and language servers.

// searched is how many arguments are looked at.
const searched = 24

// helper returns what sort of helper a command is, and how sure that is; "" for none.
func helper(c *command.Command, words []string) (name string, sure Confidence) {
	if browsers(command.ProgramName(words[0])) {
		return "browser", automated(words)
	}
	paths := []string{words[0], c.Path}
	if c.Runtime == "java" && len(c.Launchers) == 0 {
		paths = append(paths, words[:min(len(words), searched)]...) // one is the class path
	}
	if slices.ContainsFunc(paths, ofSerena) {
		return "serena language server", Certain
	}
	return "", ""
}

var browsers = catalog.List("browsers")

// ofSerena reports whether a path lies where serena keeps its language servers.
func ofSerena(path string) bool {
	return strings.Contains(path, ".serena/language_servers/") || strings.Contains(path, `.serena\language_servers\`)
}

// Marks of the profiles with which servers, and other programs that automate, start browsers.
var (
	serverProfiles = []string{
		"ms-playwright-mcp", "ms-playwright/mcp-", `ms-playwright\mcp-`, ".cache/chrome-devtools-mcp/", "chrome-devtools-mcp-",
	}
	automationProfiles = []string{
		"playwright_chromiumdev_profile-", "playwright_firefoxdev_profile-", "playwright_webkitdev_profile-",
		"puppeteer_dev_chrome_profile-", "puppeteer_dev_firefox_profile-",
	}
)

// automated returns how sure it is that a browser is under automation; "" when it is not. A person's own browser may
// listen for a debugger too, so that this alone proves nothing.
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
	return slices.ContainsFunc(marks, func(m string) bool { return strings.Contains(s, m) })
}
