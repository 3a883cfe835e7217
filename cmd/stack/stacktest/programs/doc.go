// Package programs runs published relying parties against the real service, with a real browser
// where a person acts. Their registration and their settings are those of docs/apps.md. Its tests
// have the build tag programs: make test-clients runs them.
package programs
