// Package programs runs published relying parties against the real service, with a real browser
// where a person acts. Its tests have the build tag programs: make test-clients runs them.
package programs
