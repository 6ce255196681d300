package main

// checks are the safety checks of a reap, by the law of reaping that each one keeps.
var checks = []check{
	{1, "rules/plan_guard.go", "what is too young is kept", "TestLaw1AgeIsCheckedAgain", []edit{
		{"case g.now.Sub(p.Started) < g.consent.OlderThan:", "case false:"},
	}},
	{1, "rules/plan_guard.go", "an age below zero allows nothing", "TestLaw1AgeIsCheckedAgain", []edit{
		{"g.consent.OlderThan = max(0, c.OlderThan)", "g.consent.OlderThan = c.OlderThan"},
	}},
	{1, "rules/plan_guard.go", "an instance is ended whole or not at all", "TestLaw1OnlyWhatARuleGaveUp", []edit{
		{"case !slices.Contains(s.nodes, m):", "case false:"},
	}},
	{1, "rules/plan_guard.go", "a helper that was not given up is left", "TestLaw1OnlyWhatARuleGaveUp", []edit{
		{"case !slices.Contains(s.nodes, node):", "case false:"},
	}},
	{1, "rules/plan.go", "nothing on request without its rule", "TestLaw1OnRequestNeedsTheRuleNamed", []edit{
		{"pids := f.Reap.Safe\n", "pids := slices.Concat(f.Reap.Safe, f.Reap.OnRequest)\n"},
	}},
	{1, "rules/plan.go", "no rule but those that were named", "TestLaw1OnRequestNeedsTheRuleNamed", []edit{
		{"if !slices.Contains(g.consent.Rules, f.Rule) {", "if false {"},
	}},

	{2, "rules/plan_guard.go", "never the first process", "TestLaw2NeverPID1", []edit{
		{"case p.PID <= 1:", "case false:"},
	}},
	{2, "rules/plan_guard.go", "never who has no command line", "TestLaw2NeverAKernelThread", []edit{
		{"case g.kernel(p):", "case false:"},
	}},
	{2, "rules/plan_guard.go", "never itself", "TestLaw2NeverItself", []edit{
		{"if pid, ok := g.inside[in]; ok {", "if pid, ok := g.inside[in]; ok && false {"},
	}},
	{2, "rules/plan_guard.go", "never an ancestor", "TestLaw2NeverAnAncestor", []edit{
		{"for ; at != none; at = t.forest.parent[at] {", "for ; at != none; at = none {"},
	}},
	{2, "rules/plan_guard.go", "nor what belongs to who is kept", "TestLaw2NeverAnAncestor", []edit{
		{"if reason := g.keepsInstance(over); reason != \"\" {", "if reason := g.keepsInstance(over); false {"},
	}},
	{2, "rules/plan_guard.go", "nobody, when who is above cannot be seen", "TestLaw2NeverAnAncestor", []edit{
		{"if g.cut(at) {", "if false {"},
	}},
	{2, "rules/plan_guard.go", "nor when who is above is hidden", "TestLaw2NeverAnAncestor", []edit{
		{"return g.snap.Host.OS != \"windows\"", "return false"},
	}},
	{2, "rules/plan_guard.go", "nobody, when it does not know itself", "TestLaw2NeverAnAncestor", []edit{
		{"\tif at == none {\n\t\tg.blind = ", "\tif at == none {\n\t\tg.consent.Self = 0\n\t\t_ = "},
	}},
	{2, "rules/plan_guard.go", "never another user's process", "TestLaw2NeverAnotherUser", []edit{
		{"\treturn g.foreign(p)\n", "\treturn \"\"\n"},
	}},
	{2, "rules/plan_guard.go", "all users' for root only", "TestLaw2NeverAnotherUser", []edit{
		{"if g.consent.AllUsers && g.root() {", "if g.consent.AllUsers {"},
	}},
	{2, "rules/plan_guard.go", "all users' only when root asks", "TestLaw2NeverAnotherUser", []edit{
		{"if g.consent.AllUsers && g.root() {", "if g.root() {"},
	}},
	{2, "rules/plan_guard.go", "nor one whose user is not known", "TestLaw2NeverAnotherUser", []edit{
		{"return \"it cannot be seen whose it is\"", "return \"\""},
	}},
	{2, "rules/plan_guard.go", "never a supervised process", "TestLaw2NeverASupervisedProcess", []edit{
		{"if in.owner.Kind == OwnerService {", "if false {"},
	}},
	{2, "rules/plan_guard.go", "never a client that somebody may use", "TestLaw2NeverAClientWithATerminal", []edit{
		{"if !g.unattended(in) {", "if false {"},
	}},
	{2, "rules/plan_guard.go", "never a client for working with a person", "TestLaw2NeverAClientWithATerminal", []edit{
		{"return g.headless(in) && ", "return "},
	}},
	{2, "rules/plan_guard.go", "never a client with a terminal, or that may have one", "TestLaw2NeverAClientWithATerminal", []edit{
		{"return g.proc(m).TTY != \"-\"", "return false"},
	}},
	{2, "rules/plan_guard.go", "never a client inside another instance", "TestLaw2NeverAClientWithATerminal", []edit{
		{"if g.recs[m].role() == RoleClient {", "if false {"},
	}},
	{2, "rules/plan_guard.go", "never who is not known", "TestLaw2NeverAClientWithATerminal", []edit{
		{"return \"it is nobody that mcpdoctor knows\"", "return \"\""},
	}},
	{2, "rules/plan_guard.go", "never what somebody types into", "TestLaw2NeverAClientWithATerminal", []edit{
		{"case terminal(g.proc(node)):", "case false:"},
	}},
	{2, "rules/plan_guard.go", "never who has no start", "TestLaw2NeverWithoutIdentity", []edit{
		{"case p.Start == 0:", "case false:"},
	}},
	{2, "rules/plan_guard.go", "never who has no age", "TestLaw2NeverWithoutIdentity", []edit{
		{"case p.Started.IsZero():", "case false:"},
	}},

	{4, "rules/plan.go", "the server before its launchers, helpers last", "TestLaw4TheServerFirstThenUpwardsThenWhatItStarted", []edit{
		{"return int(a.stage - b.stage)", "return 0"},
	}},
	{4, "rules/plan.go", "the deepest first", "TestLaw4TheServerFirstThenUpwardsThenWhatItStarted", []edit{
		{"range slices.Backward(s.in.members) {", "range slices.All(s.in.members) {"},
	}},
	{4, "scan/end.go", "a group with one that cannot be opened is left whole", "TestEndScripted", []edit{
		{"if t.fate.Outcome == Refused {\n", "if false {\n"},
	}},
	{4, "scan/end.go", "a later stage waits", "TestEndScripted", []edit{
		{"if t.stage == i && ctx.Err() == nil {", "if i == 0 && ctx.Err() == nil {"},
	}},
	{4, "scan/end.go", "who has ended is not killed", "TestEndScripted", []edit{
		{"func (e *ending) kill(t *target) {\n\tif !e.left(t) {", "func (e *ending) kill(t *target) {\n\tif t.handle == nil {"},
	}},

	{5, "rules/plan_confirm.go", "only what is still given up", "TestLaw5SparedAtTheSecondLookWhenItHasAnOwner", []edit{
		{"range second.Instances {", "range first.Instances {"},
	}},
	{5, "rules/plan_confirm.go", "only what no law keeps by now", "TestLaw5SparedAtTheSecondLookWhenALawKeepsIt", []edit{
		{"range second.Instances {", "range first.Instances {"},
	}},
	{5, "rules/plan_confirm.go", "only what the first look planned as well", "TestLaw5SparedAtTheSecondLookWhatIsNewInIt", []edit{
		{"case was[s.id]:", "case true:"},
	}},
	{5, "rules/plan_confirm.go", "the same process, and not only the same PID", "TestLaw5SparedAtTheSecondLookWhenThePIDChangedHands", []edit{
		{"was[s.id] = true", "was[scan.ID{PID: s.id.PID}] = true"},
		{"case was[s.id]:", "case was[scan.ID{PID: s.id.PID}]:"},
	}},

	{6, "rules/plan_guard.go", "never who can still be talked to", "TestLaw6WhoCanStillBeTalkedToIsKept", []edit{
		{"reason = g.talkedTo(s.in, m)", "reason = \"\""},
	}},
	{6, "rules/plan_guard.go", "nor who may still be talked to", "TestLaw6WhatCannotBeReadIsKept", []edit{
		{"if holders == nil {", "if false {"},
	}},
	{6, "rules/plan_guard.go", "never what cannot be read", "TestLaw6WhatCannotBeReadIsKept", []edit{
		{"case g.kernel(p):", "case false:"},
	}},
}
