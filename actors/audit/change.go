package audit

// ChangeOf returns the event of what operators declare by a name: it replaces the values before by
// those after. nil = it was not there, or is not any more. The details say which.
func ChangeOf(action Action, name string, before, after Data) Event {
	e := Event{Action: action, Target: name, Details: []string{"changed"}, Data: Data{}}
	switch {
	case before == nil:
		e.Details = []string{"created"}
	case after == nil:
		e.Details = []string{"deleted"}
	}
	if before != nil {
		e.Data[Before] = before
	}
	if after != nil {
		e.Data[After] = after
	}
	return e
}
