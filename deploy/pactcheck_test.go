//go:build deploy

package deploy_test

import (
	"strings"
	"testing"
)

// TestPactcheckArchives packs pactcheck for every platform of the Makefile, and looks at the
// programs in the archives.
func TestPactcheckArchives(t *testing.T) {
	got := sh(t, `
		$(make -n --no-print-directory pactcheck-dist | sed "s#pactcheck-dist bin#pactcheck-dist $T#") >$T/log
		for archive in $T/*.tar.gz; do tar -C $T -xzf $archive; done
		for archive in $T/*.zip; do python3 -m zipfile -e $archive $T; done
		cd $T
		for program in */pactcheck */pactcheck.exe; do
			test -s ${program%/*}/openapi.yaml && test -s ${program%/*}/NOTICES.txt
			echo $program $(head -c 4 $program | od -An -c | tr -d ' ')
		done`)
	for _, want := range []string{`linux-amd64/pactcheck 177ELF`, `linux-arm64/pactcheck 177ELF`,
		`darwin-amd64/pactcheck 317372355376`, `darwin-arm64/pactcheck 317372355376`, `windows-amd64/pactcheck.exe MZ`} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
