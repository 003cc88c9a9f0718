package gpu

import "testing"

func TestFault(t *testing.T) {
	for _, c := range []struct {
		name string
		give Signs
		want string
	}{
		{"well", Signs{}, ""},
		{"off the bus", Signs{XIDs: []uint64{79}}, "Xid 79, it has fallen off the bus"},
		{"uncorrectable memory error", Signs{XIDs: []uint64{48}}, "Xid 48, a memory error that could not be corrected"},
		{"microcontroller", Signs{XIDs: []uint64{62}}, "Xid 62, its microcontroller has halted"},
		{"a row not remapped", Signs{XIDs: []uint64{64}}, "Xid 64, a row of its memory could not be remapped"},
		{"NVLink", Signs{XIDs: []uint64{74}}, "Xid 74, an NVLink has failed"},
		{"uncontained", Signs{XIDs: []uint64{95}}, "Xid 95, a memory error that was not contained"},
		{"GSP timeout", Signs{XIDs: []uint64{119}}, "Xid 119, its system processor does not answer"},
		{"GSP error", Signs{XIDs: []uint64{120}}, "Xid 120, its system processor has failed"},
		{"not recovered", Signs{XIDs: []uint64{140}}, "Xid 140, a memory error that was not recovered from"},
		{"a program's errors", Signs{XIDs: []uint64{8, 13, 31, 32, 43, 45, 68, 69}}, ""},
		{"a row remapped", Signs{XIDs: []uint64{63}}, ""},
		{"many errors corrected", Signs{XIDs: []uint64{92}}, ""},
		{"contained", Signs{XIDs: []uint64{94}}, ""},
		{"contained, and counted", Signs{XIDs: []uint64{94}, UncorrectedECC: 1}, "memory errors that could not be corrected: 1"},
		{"recovery changed to nothing", Signs{XIDs: []uint64{154}}, ""},
		{"unknown", Signs{XIDs: []uint64{0, 999, 1 << 40}}, ""},
		{"the first fatal one", Signs{XIDs: []uint64{31, 119, 79}}, "Xid 119, its system processor does not answer"},
		{"counted from before", Signs{UncorrectedECC: 3}, "memory errors that could not be corrected: 3"},
		{"a row not remapped before", Signs{RemapFailed: true, UncorrectedECC: 3}, "a row of its memory could not be remapped"},
		{"lost", Signs{Lost: true, UncorrectedECC: 3}, "the driver has lost it"},
		{"no longer listed", Signs{Gone: true}, "the driver no longer lists it"},
		{"silent", Signs{Silent: "unknown error", RemapFailed: true}, "the driver does not answer for it: unknown error"},
		{"reset required", Signs{NeedsReset: true}, "the driver wants it reset"},
		{"reboot", Signs{Recovery: 2}, "the driver asks to reboot the machine"},
		{"a recovery of a newer driver", Signs{Recovery: 9}, "the driver asks for recovery action 9"},
	} {
		if got := Fault(c.give); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
