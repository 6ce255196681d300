package main

const (
	guard       = "rules/plan_guard.go"
	plan        = "rules/plan.go"
	confirm     = "rules/plan_confirm.go"
	end         = "scan/terminate/terminate.go"
	handle      = "scan/terminate/handle.go"
	handleLinux = "scan/terminate/handle_linux.go"
)

// checks are the safety checks of a reap, by the law of reaping that each one keeps.
var checks = []check{
	{1, "what is too young is kept", "TestLaw1AgeIsCheckedAgain", []edit{
		{guard, "case g.now.Sub(p.Started) < g.consent.OlderThan:", "case false:"},
	}},
	{1, "an age below zero allows nothing", "TestLaw1AgeIsCheckedAgain", []edit{
		{guard, "g.consent.OlderThan = max(0, c.OlderThan)", "g.consent.OlderThan = c.OlderThan"},
	}},
	{1, "an instance is ended whole or not at all", "TestLaw1OnlyWhatARuleGaveUp", []edit{
		{guard, "case !slices.Contains(s.nodes, m):", "case false:"},
	}},
	{1, "a helper that was not given up is left", "TestLaw1OnlyWhatARuleGaveUp", []edit{
		{guard, "case !slices.Contains(s.nodes, node):", "case false:"},
	}},
	{1, "nothing on request without its rule", "TestLaw1OnRequestNeedsTheRuleNamed", []edit{
		{plan, "pids := f.Reap.Safe\n", "pids := slices.Concat(f.Reap.Safe, f.Reap.OnRequest)\n"},
	}},
	{1, "no rule but those that were named", "TestLaw1OnRequestNeedsTheRuleNamed", []edit{
		{plan, "if !slices.Contains(g.consent.Rules, f.Rule) {", "if false {"},
	}},

	{2, "never the first process", "TestLaw2NeverPID1", []edit{
		{guard, "case p.PID <= 1:", "case false:"},
	}},
	{2, "never who has no command line", "TestLaw2NeverAKernelThread", []edit{
		{guard, "case g.kernel(p):", "case false:"},
	}},
	{2, "never itself", "TestLaw2NeverItself", []edit{
		{guard, "if pid, ok := g.inside[in]; ok {", "if pid, ok := g.inside[in]; ok && false {"},
	}},
	{2, "never an ancestor", "TestLaw2NeverAnAncestor", []edit{
		{guard, "for ; at != none; at = t.forest.parent[at] {", "for ; at != none; at = none {"},
	}},
	{2, "nor what belongs to who is kept", "TestLaw2NeverAnAncestor", []edit{
		{guard, "if reason := g.keepsInstance(over); reason != \"\" {", "if reason := g.keepsInstance(over); false {"},
	}},
	{2, "nobody, when who is above cannot be seen", "TestLaw2NeverAnAncestor", []edit{
		{guard, "if g.cut(at) {", "if false {"},
	}},
	{2, "nor when who is above is hidden", "TestLaw2NeverAnAncestor", []edit{
		{guard, "return g.snap.Host.OS != \"windows\"", "return false"},
	}},
	{2, "nobody, when it does not know itself", "TestLaw2NeverAnAncestor", []edit{
		{guard, "\tif at == none {\n\t\tg.blind = ", "\tif at == none {\n\t\tg.consent.Self = 0\n\t\t_ = "},
	}},
	{2, "never another user's process", "TestLaw2NeverAnotherUser", []edit{
		{guard, "\treturn g.foreign(p)\n", "\treturn \"\"\n"},
	}},
	{2, "all users' for root only", "TestLaw2NeverAnotherUser", []edit{
		{guard, "if g.consent.AllUsers && g.root() {", "if g.consent.AllUsers {"},
	}},
	{2, "all users' only when root asks", "TestLaw2NeverAnotherUser", []edit{
		{guard, "if g.consent.AllUsers && g.root() {", "if g.root() {"},
	}},
	{2, "nor one whose user is not known", "TestLaw2NeverAnotherUser", []edit{
		{guard, "return \"it cannot be seen whose it is\"", "return \"\""},
	}},
	{2, "never a supervised process", "TestLaw2NeverASupervisedProcess", []edit{
		{guard, "if in.owner.Kind == OwnerService {", "if false {"},
	}},
	{2, "never a client that somebody may use", "TestLaw2NeverAClientWithATerminal", []edit{
		{guard, "if !g.unattended(in) {", "if false {"},
	}},
	{2, "never a client for working with a person", "TestLaw2NeverAClientWithATerminal", []edit{
		{guard, "return g.headless(in) && ", "return "},
	}},
	{2, "never a client with a terminal, or that may have one", "TestLaw2NeverAClientWithATerminal", []edit{
		{guard, "return g.proc(m).TTY != \"-\"", "return false"},
	}},
	{2, "never a client inside another instance", "TestLaw2NeverAClientWithATerminal", []edit{
		{guard, "if g.recs[m].role() == RoleClient {", "if false {"},
	}},
	{2, "never who is not known", "TestLaw2NeverAClientWithATerminal", []edit{
		{guard, "return \"it is nobody that mcpdoctor knows\"", "return \"\""},
	}},
	{2, "never what somebody types into", "TestLaw2NeverAClientWithATerminal", []edit{
		{guard, "case terminal(g.proc(node)):", "case false:"},
	}},
	{2, "never who has no start", "TestLaw2NeverWithoutIdentity", []edit{
		{guard, "case p.Start == 0:", "case false:"},
	}},
	{2, "never who has no age", "TestLaw2NeverWithoutIdentity", []edit{
		{guard, "case p.Started.IsZero():", "case false:"},
	}},

	{2, "the first process and itself are not even opened", "TestOpenLaw2Unnamed", []edit{
		{handle, "case id.PID <= 1 || id.PID == os.Getpid():", "case false && id.PID == os.Getpid():"},
	}},

	{3, "nobody without a start is opened", "TestOpenLaw2Unnamed", []edit{
		{handle, "case id.Start == 0:", "case false:"},
	}},
	{3, "the start is compared", "TestOpenLaw3OtherStart", []edit{
		{handleLinux, "case st.Start != h.id.Start, st.State", "case st.State"},
	}},
	{3, "signals go through the handle", "TestOpenLaw3Reused", []edit{
		{handleLinux, "err = unix.PidfdSendSignal(h.fd, s, nil, 0)", "err = unix.Kill(h.id.PID, s)"},
		{handle, "case h.ended():", "case false:"}, // which asks the handle too
	}},
	{3, "without a handle the start is compared before each signal", "TestOpenLaw3Reused", []edit{
		{handleLinux, "} else if err = h.checkIdentity(); err == nil {", "} else {"},
		{handle, "case h.ended():", "case false:"}, // which asks the handle too
	}},
	{3, "the kernel and /proc mean the same process", "TestTerminateLaw3OtherNamespace", []edit{
		{handleLinux, "\treturn errOtherNamespace\n}\n", "\treturn nil\n}\n"},
	}},

	{4, "the server before its launchers, helpers last", "TestLaw4TheServerFirstThenUpwardsThenWhatItStarted", []edit{
		{plan, "return int(a.stage - b.stage)", "return 0"},
	}},
	{4, "the deepest first", "TestLaw4TheServerFirstThenUpwardsThenWhatItStarted", []edit{
		{plan, "range slices.Backward(s.in.members) {", "range slices.All(s.in.members) {"},
	}},
	{4, "a group with one that cannot be opened is left whole", "TestTerminateScripted", []edit{
		{end, "if t.result.Outcome == Refused {\n", "if false {\n"},
	}},
	{4, "a later stage waits", "TestTerminateScripted", []edit{
		{end, "if t.stage == i && ctx.Err() == nil {", "if i == 0 && ctx.Err() == nil {"},
	}},
	{4, "who has ended is not killed", "TestTerminateScripted", []edit{
		{end, "func (g *group) killOne(t *target) {\n\tif !g.running(t) {", "func (g *group) killOne(t *target) {\n\tif t.handle == nil {"},
	}},

	{5, "only what is still given up", "TestLaw5SparedAtTheSecondLookWhenItHasAnOwner", []edit{
		{confirm, "range second.Instances {", "range first.Instances {"},
	}},
	{5, "only what no law keeps by now", "TestLaw5SparedAtTheSecondLookWhenALawKeepsIt", []edit{
		{confirm, "range second.Instances {", "range first.Instances {"},
	}},
	{5, "only what the first look planned as well", "TestLaw5SparedAtTheSecondLookWhatIsNewInIt", []edit{
		{confirm, "case was[s.id]:", "case true:"},
	}},
	{5, "the same process, and not only the same PID", "TestLaw5SparedAtTheSecondLookWhenThePIDChangedHands", []edit{
		{confirm, "was[s.id] = true", "was[scan.ID{PID: s.id.PID}] = true"},
		{confirm, "case was[s.id]:", "case was[scan.ID{PID: s.id.PID}]:"},
	}},

	{6, "never who can still be talked to", "TestLaw6WhoCanStillBeTalkedToIsKept", []edit{
		{guard, "reason = g.talkedTo(s.in, m)", "reason = \"\""},
	}},
	{6, "nor who may still be talked to", "TestLaw6WhatCannotBeReadIsKept", []edit{
		{guard, "if holders == nil {", "if false {"},
	}},
	{6, "never what cannot be read", "TestLaw6WhatCannotBeReadIsKept", []edit{
		{guard, "case g.kernel(p):", "case false:"},
	}},
}
