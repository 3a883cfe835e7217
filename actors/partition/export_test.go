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
}
