package network

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// adminChain is where CNI's firewall plugin has a machine's own rules, which come before its own.
const adminChain = "CNI-ADMIN"

// acceptPublished lets connections to published ports through to the bridge. The plugin lets containers' own connections pass and the answers to
// them, and nothing that begins outside: that depends on the machine's policy for what it forwards, which Docker's engine sets to drop.
func acceptPublished(ctx context.Context) error {
	if _, err := exec.LookPath("iptables"); err != nil {
		return nil // the plugin uses something else
	}
	iptables := func(args ...string) error {
		out, err := exec.CommandContext(ctx, "iptables", append([]string{"--wait"}, args...)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("iptables %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
		}
		return nil
	}
	// The address of what is published was translated, and that of nothing else that comes to the bridge.
	rule := []string{adminChain, "-o", bridgeName, "-m", "conntrack", "--ctstate", "DNAT", "-j", "ACCEPT"}
	if iptables(append([]string{"-C"}, rule...)...) == nil {
		return nil
	}
	if iptables("-n", "-L", adminChain) != nil {
		if err := iptables("-N", adminChain); err != nil && iptables("-n", "-L", adminChain) != nil {
			return err
		}
	}
	return iptables(append([]string{"-A"}, rule...)...)
}
