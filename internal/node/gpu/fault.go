package gpu

import (
	"strconv"
)

// What takes a GPU out of use.

// Signs are what shows of a device's health.
type Signs struct {
	XIDs           []uint64 // errors that the driver reported
	UncorrectedECC uint64   // memory errors since the driver was loaded that could not be corrected
	RemapFailed    bool     // a row of its memory could not be remapped; DCGM's health check has it isolated for that
	Lost           bool     // the driver does not reach the device
	NeedsReset     bool     // the driver refuses to use it before a reset
	Recovery       uint32   // what the driver asks for, as NVML numbers it; 0 is nothing
}

// Fault says why no task may have a device with these signs; it is empty where one may. Errors of a program
// leave the device as it was, and are no fault.
func Fault(s Signs) string {
	for _, x := range s.XIDs {
		if what, fatal := fatalXIDs[x]; fatal {
			return "Xid " + strconv.FormatUint(x, 10) + ", " + what
		}
	}
	switch {
	case s.Lost:
		return "the driver has lost it"
	case s.NeedsReset:
		return "the driver wants it reset"
	case s.Recovery != 0 && int(s.Recovery) < len(recoveries):
		return "the driver asks to " + recoveries[s.Recovery]
	case s.Recovery != 0:
		return "the driver asks for recovery action " + strconv.FormatUint(uint64(s.Recovery), 10)
	case s.RemapFailed:
		return fatalXIDs[64]
	case s.UncorrectedECC > 0:
		return "memory errors that could not be corrected: " + strconv.FormatUint(s.UncorrectedECC, 10)
	}
	return ""
}

// fatalXIDs are the errors after which a device is of no use until it is reset, or its machine started anew.
// They are those for which NVIDIA's catalog names that as the immediate action (RESET_GPU, RESTART_BM,
// RESTART_VM), and 48 and 74, of which it says so in their description:
// https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html
//
// Not among them: 63 (a row was remapped) and 92, after which a device serves on; 94, which ends only the
// program that it hit, though the memory error behind it counts as such; 154, which tells that the driver's
// recovery action has changed, not to what: that is read by itself. 144 to 150 depend on details that NVML does
// not give; what is fatal of them shows as recovery action, too.
var fatalXIDs = map[uint64]string{
	46:  "it does not respond",
	48:  "a memory error that could not be corrected",
	62:  "its microcontroller has halted",
	64:  "a row of its memory could not be remapped",
	74:  "an NVLink has failed",
	79:  "it has fallen off the bus",
	95:  "a memory error that was not contained",
	109: "it does not switch contexts",
	110: "a security fault",
	119: "its system processor does not answer",
	120: "its system processor has failed",
	136: "its links could not be trained",
	140: "a memory error that was not recovered from",
	143: "it could not be initialized",
	151: "its keys could not be rotated",
	155: "an NVLink is down",
	156: "a part of it was retired",
	158: "a fatal timeout",
}

// recoveries are NVML's recovery actions (nvmlDeviceGpuRecoveryAction_t), by number.
var recoveries = []string{"", "reset it", "reboot the machine", "end what uses it peer to peer", "drain and reset it"}
