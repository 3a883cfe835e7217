package partition

// Bugs plant a bug in a Member, each by its name.
var Bugs = map[string]func(*Member){
	"no own deadline of the lease":        func(m *Member) { m.planted.noDeadline = true },
	"lapsed lease comes back":             func(m *Member) { m.planted.leaseReturns = true },
	"lower beat ignored":                  func(m *Member) { m.planted.lowerBeat = true },
	"lower epoch ignored":                 func(m *Member) { m.planted.lowerEpoch = true },
	"counts not sent with a move":         func(m *Member) { m.planted.noCounts = true },
	"giver decides while it moves":        func(m *Member) { m.planted.decidesMoving = true },
	"decides again after an unknown hand": func(m *Member) { m.planted.decidesAgain = true },
	"leaver accepts partitions":           func(m *Member) { m.planted.leaverAccepts = true },
	"joiner up before Welcome":            func(m *Member) { m.planted.noWelcome = true },
	"Seen sent before changes apply":      func(m *Member) { m.planted.earlySeen = true },
	"confirmed before Applied":            func(m *Member) { m.planted.earlyConfirm = true },
	"confirmed before leases end":         func(m *Member) { m.planted.soonConfirm = true },
	"lease kept while behind":             func(m *Member) { m.planted.noLag = true },
	"reading counts before Applied":       func(m *Member) { m.planted.readIsApplied = true },
	"up without one more reading":         func(m *Member) { m.planted.earlyUp = true },
	"change waits for nodes that join":    func(m *Member) { m.planted.joinersWait = true },
}
