package gpu

import (
	"strconv"
)

// Signs are what the driver shows of a device's health.
type Signs struct {
	XIDs           []uint64 // errors that the driver reported
	UncorrectedECC uint64   // uncorrectable memory errors since the driver was loaded
	RemapFailed    bool     // a row of its memory could not be remapped; DCGM's health check isolates the device for that
	Lost           bool     // the driver cannot reach the device
	Gone           bool     // the driver no longer lists the device
	Silent         string   // what the driver has kept answering for some seconds, instead of the device's state
	NeedsReset     bool     // the driver refuses to use the device until it's reset
	Recovery       uint32   // the recovery action that the driver asks for, as NVML numbers it; 0 is none
}

// Fault says why no task may have a device with these signs, or returns "" if one may. A program's own errors leave the device intact, so
// they're no fault.
func Fault(s Signs) string {
	for _, x := range s.XIDs {
		if what, fatal := fatalXIDs[x]; fatal {
			return "Xid " + strconv.FormatUint(x, 10) + ", " + what
		}
	}
	switch {
	case s.Lost:
		return "the driver has lost it"
	case s.Gone:
		return "the driver no longer lists it"
	case s.NeedsReset:
		return "the driver wants it reset"
	case s.Recovery != 0 && int(s.Recovery) < len(recoveries):
		return "the driver asks to " + recoveries[s.Recovery]
	case s.Recovery != 0:
		return "the driver asks for recovery action " + strconv.FormatUint(uint64(s.Recovery), 10)
	case s.Silent != "":
		return "the driver does not answer for it: " + s.Silent
	case s.RemapFailed:
		return fatalXIDs[64]
	case s.UncorrectedECC > 0:
		return "memory errors that could not be corrected: " + strconv.FormatUint(s.UncorrectedECC, 10)
	}
	return ""
}

// fatalXIDs are the errors after which a device is unusable until it's reset or its machine restarts. They are those whose immediate action
// in NVIDIA's catalog is RESET_GPU, RESTART_BM or RESTART_VM, and 48 and 74, whose descriptions there say the same:
// https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html
//
// These aren't fatal: after 63 (a row was remapped) and 92 the device keeps working. 94 ends only the program that it hit, though the
// memory error behind it counts in UncorrectedECC. 154 says that the driver's recovery action changed, but not to what; we read the action
// separately. 144 to 150 depend on details that NVML doesn't report; if they're fatal, the recovery action shows that too.
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
