package main

import (
	"fmt"
	"strings"
	"time"

	"mcpdoctor/scan"
)

// drivenForms are servers that drive a browser.
var drivenForms = [][]string{
	{"=npm exec @playwright/mcp@latest", "sh -c 'playwright-mcp'", "node /home/dev/.npm/_npx/9833c18b/node_modules/.bin/playwright-mcp"},
	{"node /srv/mcp/node_modules/.bin/playwright-mcp"},
	{"node /srv/mcp/node_modules/.bin/mcp-server-puppeteer"},
	{"node /home/dev/.npm-global/bin/chrome-devtools-mcp"},
}

var profiles = []string{
	"/tmp/playwright_chromiumdev_profile-a1",
	"/home/dev/.cache/ms-playwright-mcp/mcp-chrome-1",
	"/tmp/puppeteer_dev_chrome_profile-x1",
	"/home/dev/.cache/chrome-devtools-mcp/chrome-profile",
}

// storyBrowser starts a browser, from a server or from a script of the user.
func (s *simulation) storyBrowser() {
	a := s.account()
	if s.chance(30) {
		s.scriptBrowser(a)
		return
	}
	o := s.startClient(a)
	session := &purpose{what: "its client talks to it", neededBy: o.client}
	u := s.serverOf(o.client, o.style, nil, session, drivenForms[s.IntN(len(drivenForms))])
	o.servers = append(o.servers, u)
	s.at(s.moment(s.present), func() {
		if !u.main.exited {
			s.startBrowser(u.main, &purpose{what: "its server drives it", neededBy: u.main}, s.chance(50))
		}
	})
	switch s.IntN(3) {
	case 0:
		s.at(s.moment(s.present), func() { s.exit(u.main, "crashed") })
	case 1:
		s.at(s.moment(s.present), func() { s.exitClient(o) })
	}
}

// startBrowser starts a browser with its processes.
func (s *simulation) startBrowser(driver *task, why *purpose, piped bool) *task {
	profile := profiles[s.IntN(len(profiles))]
	line := "/opt/google/chrome/chrome --headless --enable-automation --user-data-dir=" + profile
	if piped {
		line += " --remote-debugging-pipe"
	} else {
		line += " --remote-debugging-port=0"
	}
	b := s.start(driver, line)
	b.setsid()
	b.purposes = []*purpose{why}
	b.termDelay, b.eofDelay = s.between(0, time.Second), -1
	b.setStdin(descriptor{kind: scan.StdinNull})
	b.setStdout(descriptor{kind: scan.StdinNull})
	if piped {
		s.connect(driver, b, scan.StdinPipe)
		b.stdin.fd = 3
		if s.chance(60) {
			b.eofDelay = 0 // as Chromium should
		}
	} else {
		b.listens, b.busyConnections = []string{fmt.Sprintf("tcp:127.0.0.1:%d", 30000+b.pid%20000)}, 1
	}
	if s.chance(5) {
		b.unreadable = oneOf(s, []string{"stdin", "listen"}, []string{"listen"})
	}
	u := &unit{kind: browser, tasks: []*task{b}, main: b}
	for range s.IntN(3) {
		c := s.start(b, "/opt/google/chrome/chrome --type=renderer --user-data-dir="+profile)
		c.purposes = b.purposes
		u.tasks = append(u.tasks, c)
	}
	if s.chance(40) { // part of the browser, adopted by init
		h := s.start(s.init, "/opt/google/chrome/chrome_crashpad_handler --monitor-self")
		h.setsid()
		h.uid = b.uid
	}
	s.units = append(s.units, u)
	return b
}

// scriptBrowser starts a browser that a script drives, and may return to.
func (s *simulation) scriptBrowser(a *account) {
	sh := a.shells[0]
	if sh.exited {
		return
	}
	script := s.start(sh, oneOf(s, "node scrape.js", "python3 crawl.py"))
	wanted := &purpose{what: "a script of the user's drives it"}
	b := s.startBrowser(script, wanted, s.chance(40))
	if b.stdin.pipe != nil {
		wanted.neededBy = script // no other process can reach it
	}
	if s.chance(50) {
		s.at(s.moment(s.present), func() {
			s.exit(script, "has done its part")
			b.busyConnections = 0
			if b.stdin.pipe == nil && s.chance(60) {
				s.at(s.moment(s.now), func() { b.busyConnections = 1 }) // it returns
			}
		})
	}
}

// undecided reports whether b may belong to a server of the same kind that is in use and has no browser.
func (s *simulation) undecided(b *task) bool {
	for _, u := range s.units {
		for _, d := range []string{"playwright", "puppeteer", "devtools"} {
			if u.kind != browser && !u.main.exited && strings.Contains(commandWords(u.main.args), d) && strings.Contains(commandWords(b.args), d) {
				return true
			}
		}
	}
	return false
}
