//go:build pact

package verify

/*
#cgo LDFLAGS: -lpact_ffi
#include <stdlib.h>

// The part of pact.h (libpact_ffi 0.4.28) that this package uses.
typedef struct VerifierHandle VerifierHandle;
void pactffi_init_with_log_level(const char *level);
const char *pactffi_version(void);
void pactffi_string_delete(char *string);
VerifierHandle *pactffi_verifier_new_for_application(const char *name, const char *version);
void pactffi_verifier_shutdown(VerifierHandle *handle);
void pactffi_verifier_set_provider_info(VerifierHandle *handle, const char *name,
	const char *scheme, const char *host, unsigned short port, const char *path);
void pactffi_verifier_set_provider_state(VerifierHandle *handle, const char *url,
	unsigned char teardown, unsigned char body);
int pactffi_verifier_set_verification_options(VerifierHandle *handle,
	unsigned char disable_ssl_verification, unsigned long request_timeout);
int pactffi_verifier_set_coloured_output(VerifierHandle *handle, unsigned char coloured_output);
int pactffi_verifier_set_no_pacts_is_error(VerifierHandle *handle, unsigned char is_error);
void pactffi_verifier_add_file_source(VerifierHandle *handle, const char *file);
int pactffi_verifier_execute(VerifierHandle *handle);
const char *pactffi_verifier_json(const VerifierHandle *handle);
*/
import "C"

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"gatehouse/contracts"
	"gatehouse/contracts/report"
)

// initialize configures the library once.
var initialize = sync.OnceFunc(func() {
	// otherwise it reports each run to its makers
	if err := os.Setenv("PACT_DO_NOT_TRACK", "true"); err != nil {
		panic(err)
	}
	level := C.CString("OFF")
	defer C.free(unsafe.Pointer(level))
	C.pactffi_init_with_log_level(level)
})

// LibraryVersion returns the version of libpact_ffi; "" = this program does not have it.
func LibraryVersion() string { return C.GoString(C.pactffi_version()) }

// silence replaces file descriptor 1 during verifications: the library prints a report there.
var silence struct {
	mu      sync.Mutex
	running int // verifications in progress
	kept    int // the real file descriptor 1 meanwhile
}

// execute runs a verifier. Several may run at once. Writes of this process to file descriptor 1 are
// discarded meanwhile.
func execute(h *C.VerifierHandle) (result C.int, err error) {
	if err := beginSilence(); err != nil {
		return 0, fmt.Errorf("silence the library: %w", err)
	}
	defer func() { err = errors.Join(err, endSilence()) }()
	return C.pactffi_verifier_execute(h), nil
}

func beginSilence() (err error) {
	silence.mu.Lock()
	defer silence.mu.Unlock()
	if silence.running > 0 {
		silence.running++
		return nil
	}
	nowhere, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, nowhere.Close()) }()
	if silence.kept, err = syscall.Dup(1); err != nil {
		return err
	}
	if err := syscall.Dup3(int(nowhere.Fd()), 1, 0); err != nil {
		return errors.Join(err, syscall.Close(silence.kept))
	}
	silence.running = 1
	return nil
}

func endSilence() error {
	silence.mu.Lock()
	defer silence.mu.Unlock()
	if silence.running--; silence.running > 0 {
		return nil
	}
	return errors.Join(syscall.Dup3(silence.kept, 1, 0), syscall.Close(silence.kept))
}

// library is the engine of libpact_ffi. It writes each interaction to a file.
type library struct {
	folder   string
	recorder *recorder
}

func newNative(r *recorder) (engine, error) {
	folder, err := os.MkdirTemp("", "pactcheck-")
	return &library{folder, r}, err
}

func (l *library) close() error { return os.RemoveAll(l.folder) }

func (l *library) try(_ context.Context, p *contracts.Pact, i int) ([]report.Problem, error) {
	pact, err := p.Alone(i)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(l.folder, "pact.json")
	if err := os.WriteFile(file, pact, 0o600); err != nil {
		return nil, err
	}
	text, passed, err := native(file, p.Provider, l.recorder.url, l.recorder.stateURL(),
		requestTimeout)
	if err != nil {
		return nil, err
	}
	// The library names the copy, which nobody else knows.
	text = bytes.ReplaceAll(text, []byte(file), []byte(filepath.Base(file)))
	problems, err := problemsOf(text)
	if err == nil && !passed && len(problems) == 0 {
		problems = []report.Problem{{Reason: "the verifier gives no reason"}}
	}
	return problems, err
}

// native verifies the pact in file against base and returns the library's result as JSON.
func native(file, provider string, base *url.URL, states string,
	timeout time.Duration) (report []byte, passed bool, err error) {
	initialize()
	var allocated []*C.char
	text := func(s string) *C.char {
		c := C.CString(s)
		allocated = append(allocated, c)
		return c
	}
	defer func() {
		for _, c := range allocated {
			C.free(unsafe.Pointer(c))
		}
	}()
	port, err := strconv.ParseUint(base.Port(), 10, 16)
	if err != nil {
		return nil, false, fmt.Errorf("port of the service: %w", err)
	}
	h := C.pactffi_verifier_new_for_application(text("pactcheck"), text("1"))
	if h == nil {
		return nil, false, errors.New("libpact_ffi returned no verifier")
	}
	defer C.pactffi_verifier_shutdown(h)
	C.pactffi_verifier_set_provider_info(h, text(provider), text(base.Scheme),
		text(base.Hostname()), C.ushort(port), text(base.Path))
	if states != "" {
		C.pactffi_verifier_set_provider_state(h, text(states), 1, 1)
	}
	C.pactffi_verifier_set_verification_options(h, 0, C.ulong(timeout.Milliseconds()))
	C.pactffi_verifier_set_coloured_output(h, 0)
	C.pactffi_verifier_set_no_pacts_is_error(h, 1)
	C.pactffi_verifier_add_file_source(h, text(file))
	result, err := execute(h)
	if err != nil {
		return nil, false, err
	}
	if result != 0 && result != 1 {
		return []byte("{}"), false, nil // it panicked: the pact fails, and others may be good
	}
	found := C.pactffi_verifier_json(h)
	if found == nil {
		return nil, false, errors.New("libpact_ffi returned no result")
	}
	defer C.pactffi_string_delete((*C.char)(unsafe.Pointer(found)))
	return []byte(C.GoString(found)), result == 0, nil
}
