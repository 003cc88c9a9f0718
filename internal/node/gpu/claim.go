package gpu

import (
	"fmt"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/kernel"
)

// Claim reserves devices for this process until it ends, because two agents that see the same devices would both hand them out.
func Claim(devices []acs.GPUDevice) error {
	for _, d := range devices {
		_, held, err := kernel.Claim("pintle-gpu/" + d.ID)
		if held {
			return fmt.Errorf("GPU %s already belongs to another agent on this machine", d.ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
