package main

const (
	reap      = "rules/reap"
	terminate = "scan/terminate"
)

// checks are the safety checks of a reap, by the law of reaping that each one enforces.
var checks = []check{
	{1, "too young", reap, "TestLaw1AgeIsCheckedAgain", []edit{
		never("guard.keepsProcess", "g.Now.Sub(p.Started) < g.consent.OlderThan"),
	}},
	{1, "a negative age allows nothing", reap, "TestLaw1AgeIsCheckedAgain", []edit{
		swap("newGuard", "max(0, c.OlderThan)", "c.OlderThan"),
	}},
	{1, "an instance whole or not at all", reap, "TestLaw1OnlyWhatARuleGaveUp", []edit{
		never("guard.keepsMember", "!slices.Contains(c.nodes, m)"),
	}},
	{1, "a helper that no rule selected", reap, "TestLaw1OnlyWhatARuleGaveUp", []edit{
		never("guard.keepsHelper", "!slices.Contains(c.nodes, node)"),
	}},
	{1, "on request only with the rule named", reap, "TestLaw1OnRequestNeedsTheRuleNamed", []edit{
		swap("guard.candidates", "f.Reap.Safe", "slices.Concat(f.Reap.Safe, f.Reap.OnRequest)"),
	}},
	{1, "no rule but those named", reap, "TestLaw1OnRequestNeedsTheRuleNamed", []edit{
		never("guard.candidates", "!slices.Contains(g.consent.Rules, f.Rule)"),
	}},

	{2, "PID 1", reap, "TestLaw2NeverPID1", []edit{
		never("guard.keepsProcess", "p.PID <= 1"),
	}},
	{2, "no command line", reap, "TestLaw2NeverAKernelThread", []edit{
		never("guard.keepsProcess", `len(p.Args) == 0 && p.Cmdline == ""`),
	}},
	{2, "mcpdoctor itself", reap, "TestLaw2NeverItself", []edit{
		swap("guard.keepsOwned", "g.selfInstances", "map[*process.Instance]int{}"),
	}},
	{2, "an ancestor of mcpdoctor", reap, "TestLaw2NeverAnAncestor", []edit{
		swap("newGuard", "t.Forest.Parent[at]", "process.None"),
	}},
	{2, "below an instance that is kept", reap, "TestLaw2NeverAnAncestor", []edit{
		swap("guard.keepsOwned", "g.keepsInstance(over)", `""`),
	}},
	{2, "an ancestor of mcpdoctor is not in the table", reap, "TestLaw2NeverAnAncestor", []edit{
		never("newGuard", "g.parentHidden(at)"),
	}},
	{2, "an ancestor of mcpdoctor is hidden", reap, "TestLaw2NeverAnAncestor", []edit{
		never("guard.parentHidden", `g.Snapshot.Host.OS != "windows"`),
	}},
	{2, "mcpdoctor is not in the table", reap, "TestLaw2NeverAnAncestor", []edit{
		then("newGuard", "at == process.None", "g.consent.Self = 0"),
	}},
	{2, "another user's process", reap, "TestLaw2NeverAnotherUser", []edit{
		swap("guard.keepsProcess", "g.keepsOtherUsers(p)", `""`),
	}},
	{2, "all users for root only", reap, "TestLaw2NeverAnotherUser", []edit{
		swap("guard.keepsOtherUsers", "g.consent.AllUsers && g.root()", "g.consent.AllUsers"),
	}},
	{2, "all users only on request", reap, "TestLaw2NeverAnotherUser", []edit{
		swap("guard.keepsOtherUsers", "g.consent.AllUsers && g.root()", "g.root()"),
	}},
	{2, "owner unknown", reap, "TestLaw2NeverAnotherUser", []edit{
		then("guard.keepsOtherUsers", `p.UID != nil || me.UID != nil || p.User == "" || me.User == ""`, `return ""`),
	}},
	{2, "a supervised process", reap, "TestLaw2NeverASupervisedProcess", []edit{
		never("guard.keepsOwned", "in.Owner.Kind == process.OwnerService"),
	}},
	{2, "a client that may be in use", reap, "TestLaw2NeverAClientWithATerminal", []edit{
		never("guard.keepsRole", "g.mayBeInUse(in)"),
	}},
	{2, "an interactive client", reap, "TestLaw2NeverAClientWithATerminal", []edit{
		never("guard.mayBeInUse", "!in.NonInteractive()"),
	}},
	{2, "a client that may have a terminal", reap, "TestLaw2NeverAClientWithATerminal", []edit{
		never("guard.mayBeInUse", `g.Process(m).TTY != "-"`),
	}},
	{2, "a client inside another instance", reap, "TestLaw2NeverAClientWithATerminal", []edit{
		never("guard.keepsRole", "g.Recognitions[m].RoleOrNone() == process.RoleClient"),
	}},
	{2, "an unrecognised process", reap, "TestLaw2NeverAClientWithATerminal", []edit{
		then("guard.keepsRole", "default", `return ""`),
	}},
	{2, "a helper with a terminal", reap, "TestLaw2NeverAClientWithATerminal", []edit{
		never("guard.keepsHelper", "process.Terminal(g.Process(node))"),
	}},
	{2, "start time unreadable", reap, "TestLaw2NeverWithoutIdentity", []edit{
		never("guard.keepsProcess", "p.Start == 0"),
	}},
	{2, "age unreadable", reap, "TestLaw2NeverWithoutIdentity", []edit{
		never("guard.keepsProcess", "p.Started.IsZero()"),
	}},
	{2, "PID 1 and mcpdoctor are not even opened", terminate, "TestOpenLaw2Unnamed", []edit{
		never("checkID", "id.PID <= 1 || id.PID == os.Getpid()"),
	}},

	{3, "nothing is opened without a start time", terminate, "TestOpenLaw2Unnamed", []edit{
		never("checkID", "id.Start == 0"),
	}},
	{3, "the start time is compared", terminate, "TestOpenLaw3OtherStart", []edit{
		never("process.checkIdentity", "st.Start != h.id.Start"),
	}},
	{3, "signals go through the handle", terminate, "TestOpenLaw3Reused", []edit{
		swap("process.signal", "unix.PidfdSendSignal(h.fd, s, nil, 0)", "unix.Kill(h.id.PID, s)"),
		never("process.send", "h.exited()"), // which asks the handle as well
	}},
	{3, "without a handle the start time is compared before each signal", terminate, "TestOpenLaw3Reused", []edit{
		swap("process.signal", "h.checkIdentity()", "nil"),
		never("process.send", "h.exited()"), // which compares as well
	}},
	{3, "the kernel and /proc mean the same process", terminate, "TestTerminateLaw3OtherNamespace", []edit{
		then("process.checkNamespace", "", "return nil"),
	}},

	{4, "the server before its launchers, helpers last", reap, "TestLaw4TheServerFirstThenUpwardsThenWhatItStarted", []edit{
		swap("guard.order", "int(a.stage - b.stage)", "0"),
	}},
	{4, "the deepest first", reap, "TestLaw4TheServerFirstThenUpwardsThenWhatItStarted", []edit{
		swap("guard.order", "slices.Backward(c.in.Members)", "slices.All(c.in.Members)"),
	}},
	{4, "a group is left whole if one of it cannot be opened", terminate, "TestTerminateScripted", []edit{
		never("openGroup", "t.result.Outcome == Refused"),
	}},
	{4, "a later stage waits", terminate, "TestTerminateScripted", []edit{
		swap("group.terminate", "t.stage == i", "i == 0"),
	}},
	{4, "no SIGKILL after the exit", terminate, "TestTerminateScripted", []edit{
		swap("group.killOne", "!g.running(t)", "t.handle == nil"),
	}},

	{5, "no longer leaked", reap, "TestLaw5SkippedAtTheSecondLookWhenItHasAnOwner", []edit{
		swap("Plan.Confirm", "[]PlannedInstance{}", "slices.Clone(first.Instances)"),
	}},
	{5, "kept by a law at the second look", reap, "TestLaw5SkippedAtTheSecondLookWhenALawKeepsIt", []edit{
		swap("Plan.Confirm", "[]PlannedInstance{}", "slices.Clone(first.Instances)"),
	}},
	{5, "not planned at the first look", reap, "TestLaw5SkippedAtTheSecondLookWhatIsNewInIt", []edit{
		swap("PlannedInstance.confirm", "before[t.id]", "true"),
	}},
	{5, "the PID was reused between the looks", reap, "TestLaw5SkippedAtTheSecondLookWhenThePIDWasReused", []edit{
		swap("Plan.ids", "out[t.id]", "out[scan.ID{PID: t.id.PID}]"),
		swap("PlannedInstance.confirm", "before[t.id]", "before[scan.ID{PID: t.id.PID}]"),
	}},

	{6, "stdin held by another process", reap, "TestLaw6WhatCanStillBeReachedIsKept", []edit{
		swap("guard.keepsMember", "g.keepsReachable(c.in, m)", `""`),
	}},
	{6, "holders of stdin unknown", reap, "TestLaw6WhatCannotBeReadIsKept", []edit{
		never("guard.keepsReachable", "holders == nil"),
	}},
	{6, "command line unreadable", reap, "TestLaw6WhatCannotBeReadIsKept", []edit{
		never("guard.keepsProcess", `len(p.Args) == 0 && p.Cmdline == ""`),
	}},
}
