package nodes

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// owns reports whether a process has the socket whose local address on loopback is that one.
func owns(pid int, local net.Addr) bool {
	address, ok := local.(*net.TCPAddr)
	if !ok {
		return false
	}
	inode := inodeOf(address)
	if inode == "" {
		return false
	}
	folder := fmt.Sprintf("/proc/%d/fd", pid)
	files, err := os.ReadDir(folder)
	if err != nil {
		return false // it has ended
	}
	for _, f := range files {
		if to, err := os.Readlink(filepath.Join(folder, f.Name())); err == nil &&
			to == "socket:["+inode+"]" {
			return true
		}
	}
	return false
}

// inodeOf finds a connected socket by its local address in /proc/net/tcp (proc(5)); "" = none.
func inodeOf(local *net.TCPAddr) string {
	ip := local.IP.To4()
	if ip == nil {
		return ""
	}
	// The kernel prints the address as a number in the byte order of the machine.
	want := []string{
		fmt.Sprintf("%02X%02X%02X%02X:%04X", ip[3], ip[2], ip[1], ip[0], local.Port),
		fmt.Sprintf("%02X%02X%02X%02X:%04X", ip[0], ip[1], ip[2], ip[3], local.Port),
		fmt.Sprintf("0000000000000000FFFF0000%02X%02X%02X%02X:%04X", ip[3], ip[2], ip[1], ip[0],
			local.Port),
	}
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		if inode := searchSockets(name, want); inode != "" {
			return inode
		}
	}
	return ""
}

func searchSockets(name string, local []string) string {
	file, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 10 {
			continue
		}
		for _, address := range local {
			if fields[1] == address && fields[9] != "0" {
				return fields[9]
			}
		}
	}
	return ""
}
