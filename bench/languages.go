// SPDX-License-Identifier: MIT

// The worker of bench/languages in Go: does what a line of its input says, and prints the microseconds.
package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"time"

	"brig"
)

func main() {
	ways := map[string]func() ([]byte, error){
		"command plain": func() ([]byte, error) { return exec.Command("/bin/true").Output() },
		"command brig":  func() ([]byte, error) { return brig.Command(nil, "/bin/true").Output() },
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		begin := time.Now()
		if _, err := ways[lines.Text()](); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(float64(time.Since(begin).Nanoseconds()) / 1e3)
	}
}
