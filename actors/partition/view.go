package partition

// View is what a node knows of its cluster. It is not changed: each change makes a new View.
type View struct {
	Self string // ID of the node
	// Up is the number of nodes that may let requests through without a holder: all that have a
	// row, those that join included, since they are up soon; at least 1.
	Up int
	// Version is the newest version of frames that all nodes understand that have a row.
	Version int
	Nodes   map[string]Node // all nodes that have a row, by ID; Beat and Seen may be old
	Parts   []Part          // Count of them
	Changed <-chan struct{} // closed when there is a newer View
}

// Part is a partition in a View.
type Part struct {
	Holder string // ID of the node that holds it; "" = nobody
	Epoch  int64
	// Claimed is the epoch at which its holder took it after the holder before had failed. What
	// that one has counted is known to those who asked it only.
	Claimed int64
	// Mine says that the node holds it and decides, as long as its lease is valid.
	Mine bool
	// Moving says that the node holds it and is handing it over: nobody decides for a moment.
	Moving bool
}
