package main

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// simulation is a machine with a history drawn from a seed: users start clients, clients start servers, all of them
// exit in one way or another, and some do so while reap is running. What is in use is known from the history, not
// from any rule.
type simulation struct {
	*machine
	*rand.Rand
	seed uint64

	now         time.Duration // when reap begins, on the boot clock
	units       []*unit
	users       []*account
	self        *task
	jobs        map[*task]bool // supervised processes
	allUsers    bool           // --all-users was given
	interactive bool
	cancelled   atomic.Bool // Ctrl-C was pressed a moment ago
}

// account is a user of the machine, with the process that adopts within the login session, and the shells.
type account struct {
	uid     int
	manager *task
	shells  []*task
}

// unit is one server with its launchers, or one browser.
type unit struct {
	kind    kind
	tasks   []*task // the outermost launcher first
	main    *task
	session *purpose // what it was started for
}

type kind string

const (
	orphan  kind = "orphan"   // a stdio server of a client
	child   kind = "spawned"  // what a gateway started for one request
	browser kind = "leftover" // a browser of a server
	other   kind = "the rest" // nothing that could be proved
)

func newSimulation(seed uint64) *simulation {
	r := rand.New(rand.NewPCG(seed, 4))
	s := &simulation{machine: newMachine(), Rand: r, seed: seed, jobs: map[*task]bool{}}
	s.now = time.Duration(float64(2*time.Minute) * pow(r.Float64(), 1500)) // 2 min to 50 h
	if r.IntN(6) == 0 {
		s.maxPID = 400 + r.IntN(400) // PIDs wrap around often
	}
	s.boot()
	for range 2 + r.IntN(7) {
		s.at(s.moment(0), s.story)
	}
	return s
}

// pow roughly is base to the power of x, for x in [0, 1): it spreads moments over orders of magnitude.
func pow(x, base float64) float64 {
	out, step := 1.0, base-1
	for range 3 { // close enough
		x *= x
		out += step * x / 3
	}
	return out
}

func oneOf[T any](s *simulation, of ...T) T { return of[s.IntN(len(of))] }

func (s *simulation) chance(percent int) bool { return s.IntN(100) < percent }

// moment is some time after from: mostly long before reap begins, often shortly before, or while it is running.
func (s *simulation) moment(from time.Duration) time.Duration {
	switch n := s.IntN(20); {
	case n < 4 && from < s.now:
		return max(from, s.now-time.Duration(s.Int64N(int64(30*time.Second)))) // shortly before
	case n < 7:
		return max(from, s.now) + time.Duration(s.Int64N(int64(18*time.Second)))
	case from >= s.now:
		return from + time.Duration(s.Int64N(int64(time.Minute)))
	}
	return from + time.Duration(s.Int64N(int64(s.now-from)))
}

func (s *simulation) between(least, most time.Duration) time.Duration {
	return least + time.Duration(s.Int64N(int64(most-least)))
}

// boot starts what is on every machine.
func (s *simulation) boot() {
	s.observer = observer{uid: 1000, systemd: true, servicesAnswer: s.chance(85), hidepid: s.chance(8)}
	switch s.IntN(10) {
	case 0: // a container, whose PID 1 is an init or a shell
		s.host.Container, s.observer.systemd = true, false
		s.init.args = lineWords(oneOf(s, "/sbin/tini -- sleep infinity", "/sbin/docker-init -- sh", "sh -c 'sleep infinity'", "bash"))
	case 1:
		s.init.args = lineWords("/init") // WSL
		s.observer.systemd = false
	default:
		s.init.args = lineWords("/usr/lib/systemd/systemd --system")
		s.init.name = "systemd"
	}
	s.present = time.Second
	if !s.host.Container {
		s.start(s.init, "/usr/sbin/cron -f").cgroup = "/system.slice/cron.service"
		s.start(s.init, "/usr/sbin/sshd -D").cgroup = "/system.slice/ssh.service"
	}
	for i := range 1 + s.IntN(2) {
		s.users = append(s.users, s.logIn(1000+i))
	}
	if s.chance(30) {
		s.observer.uid = 0
	}
}

func (s *simulation) logIn(uid int) *account {
	a := &account{uid: uid, manager: s.init}
	slice := fmt.Sprintf("/user.slice/user-%d.slice/", uid)
	switch {
	case s.observer.systemd && s.chance(70):
		a.manager = s.start(s.init, "/usr/lib/systemd/systemd --user")
		a.manager.name, a.manager.subreaper, a.manager.cgroup = "systemd", true, slice+fmt.Sprintf("user@%d.service/init.scope", uid)
	case !s.observer.systemd && s.init.args[0] == "/init":
		a.manager = s.start(s.init, "/init")
		a.manager.name, a.manager.subreaper = "Relay(12)", true
	}
	a.manager.uid = uid
	if a.manager == s.init {
		s.init.uid = 0
	}
	for range 1 + s.IntN(3) {
		a.shells = append(a.shells, s.logInShell(a, slice))
	}
	return a
}

// logInShell starts a shell: in a terminal of the desktop, in tmux, or over ssh.
func (s *simulation) logInShell(a *account, slice string) *task {
	up := a.manager
	if s.chance(40) {
		up = s.start(a.manager, oneOf(s, "tmux new-session -d -s main", "=sshd: dev@pts/1", "gnome-terminal-server"))
		up.setsid()
		if up.args[0] == "tmux" {
			up.name = "tmux: server"
		}
	}
	sh := s.start(up, oneOf(s, "-bash", "-zsh", "bash"))
	sh.setsid()
	sh.uid, up.uid = a.uid, a.uid
	if up == s.init {
		up.uid = 0
	}
	sh.tty, sh.cgroup = fmt.Sprintf("pts/%d", sh.pid%100), slice+"session-3.scope"
	sh.setStdin(descriptor{kind: "tty"})
	sh.setStdout(descriptor{kind: "tty"})
	return sh
}

func (s *simulation) account() *account { return s.users[s.IntN(len(s.users))] }
