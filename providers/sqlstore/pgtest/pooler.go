package pgtest

import (
	"bytes"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// poolerConfig lets everybody in and passes the options on that pgbouncer would refuse.
const poolerConfig = `[databases]
* = host=%s port=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = trust
auth_file = %s
pool_mode = %s
ignore_startup_parameters = extra_float_digits,synchronous_commit,default_transaction_isolation,idle_in_transaction_session_timeout
`

// StartPooler runs pgbouncer in front of a database of Start, until the test ends: Debian's package
// pgbouncer, in a mode such as session or transaction. It returns the database's URL there.
func StartPooler(tb TB, database, mode string) string {
	tb.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/pgbouncer"); err != nil {
			tb.Fatal("pgbouncer is not installed (apt-get install pgbouncer)")
		}
	}
	location, err := url.Parse(database)
	if err != nil {
		tb.Fatal(err)
	}
	credential, err := owner()
	if err != nil {
		tb.Fatal(err)
	}
	folder, err := os.MkdirTemp("", "pgtest")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			tb.Error(err)
		}
	})
	port, err := freePort()
	if err != nil {
		tb.Fatal(err)
	}
	config, users := filepath.Join(folder, "pgbouncer.ini"), filepath.Join(folder, "users")
	for name, text := range map[string]string{
		users:  "\"gatehouse\" \"\"\n",
		config: fmt.Sprintf(poolerConfig, location.Hostname(), location.Port(), port, users, mode),
	} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	if credential != nil {
		if err := os.Chown(folder, int(credential.Uid), int(credential.Gid)); err != nil {
			tb.Fatal(err)
		}
	}
	var output bytes.Buffer
	process := exec.Command(program, config)
	process.Dir, process.Stdout, process.Stderr = folder, &output, &output
	process.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	if err := process.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait() // it was killed
	})
	location.Host = fmt.Sprintf("127.0.0.1:%d", port)
	db, err := sql.Open("pgx", location.String()+"&default_query_exec_mode=simple_protocol")
	if err != nil {
		tb.Fatal(err)
	}
	defer db.Close()
	for end := time.Now().Add(startTimeout); ; <-time.After(20 * time.Millisecond) {
		if err = db.Ping(); err == nil {
			return location.String()
		}
		if time.Now().After(end) {
			_ = process.Process.Kill()
			_ = process.Wait()
			tb.Fatalf("wait for pgbouncer: %v\n%s", err, output.String())
		}
	}
}
