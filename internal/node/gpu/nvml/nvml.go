// Package nvml calls NVIDIA's management library, which comes with the driver. It loads the library when a program runs, without cgo, and
// looks each function up by its name: one that an older driver lacks answers FunctionNotFound. It is only what package gpu needs, and
// decides nothing. Names, numbers and layouts are those of nvml.h: https://docs.nvidia.com/deploy/nvml-api/
package nvml

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Name is the library's file name, for the loader's search path.
const Name = "libnvidia-ml.so.1"

// functions are the functions that we call. Where a function has versions, those that we can use come in order: the arguments are the same.
var functions = map[string][]string{
	"Init":                         {"nvmlInit_v2", "nvmlInit"},
	"Shutdown":                     {"nvmlShutdown"},
	"SystemGetDriverVersion":       {"nvmlSystemGetDriverVersion"},
	"DeviceGetCount":               {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"},
	"DeviceGetHandleByIndex":       {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"},
	"DeviceGetUUID":                {"nvmlDeviceGetUUID"},
	"DeviceGetName":                {"nvmlDeviceGetName"},
	"DeviceGetPciInfo":             {"nvmlDeviceGetPciInfo_v3"},
	"DeviceGetMigMode":             {"nvmlDeviceGetMigMode"},
	"DeviceGetMaxMigDeviceCount":   {"nvmlDeviceGetMaxMigDeviceCount"},
	"DeviceGetMigDeviceHandle":     {"nvmlDeviceGetMigDeviceHandleByIndex"},
	"DeviceGetGpuInstanceId":       {"nvmlDeviceGetGpuInstanceId"},
	"DeviceGetNvLinkState":         {"nvmlDeviceGetNvLinkState"},
	"DeviceGetNvLinkRemotePciInfo": {"nvmlDeviceGetNvLinkRemotePciInfo_v2"},
	"DeviceGetMemoryInfo":          {"nvmlDeviceGetMemoryInfo"},
	"DeviceGetMemoryInfoV2":        {"nvmlDeviceGetMemoryInfo_v2"}, // since R510
	"DeviceGetUtilizationRates":    {"nvmlDeviceGetUtilizationRates"},
	"DeviceGetTemperature":         {"nvmlDeviceGetTemperature"},
	"DeviceGetPowerUsage":          {"nvmlDeviceGetPowerUsage"},
	"DeviceGetClockInfo":           {"nvmlDeviceGetClockInfo"},
	"DeviceGetTotalEnergy":         {"nvmlDeviceGetTotalEnergyConsumption"},
	"DeviceGetPcieReplayCounter":   {"nvmlDeviceGetPcieReplayCounter"},
	"DeviceGetEncoderUtilization":  {"nvmlDeviceGetEncoderUtilization"},
	"DeviceGetDecoderUtilization":  {"nvmlDeviceGetDecoderUtilization"},
	"DeviceGetTotalEccErrors":      {"nvmlDeviceGetTotalEccErrors"},
	"DeviceGetRemappedRows":        {"nvmlDeviceGetRemappedRows"},
	"DeviceGetFieldValues":         {"nvmlDeviceGetFieldValues"},
	"DeviceRegisterEvents":         {"nvmlDeviceRegisterEvents"},
	"EventSetCreate":               {"nvmlEventSetCreate"},
	"EventSetWait":                 {"nvmlEventSetWait_v2", "nvmlEventSetWait"}, // the first one fills in more fields
	"EventSetFree":                 {"nvmlEventSetFree"},
}

// Library is the loaded library. Its methods may be called from several goroutines.
type Library struct {
	addresses map[string]uintptr
}

// Device is a GPU, or a slice of one (MIG). Handles can be compared.
type Device struct {
	lib    *Library
	handle uintptr
}

// Open loads the library from a path, or from where the loader finds it. Nothing unloads it again, since its own threads may still run.
func Open(path string) (*Library, error) {
	handle, err := purego.Dlopen(path, purego.RTLD_LAZY|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", LibraryNotFound, err)
	}
	l := &Library{map[string]uintptr{}}
	for name, versions := range functions {
		for _, v := range versions {
			if address, err := purego.Dlsym(handle, v); err == nil {
				l.addresses[name] = address
				break
			}
		}
	}
	return l, nil
}

// call calls a function. Pointers must be converted in the call's own arguments, which keeps what they point to where it is.
//
//go:uintptrescapes
func (l *Library) call(name string, args ...uintptr) Return {
	address, ok := l.addresses[name]
	if !ok {
		return FunctionNotFound
	}
	r, _, _ := purego.SyscallN(address, args...)
	return Return(uint32(r))
}

// get calls a function of a device's whose last argument points to what it answers.
func get[T any](d Device, name string, args ...uintptr) (T, Return) {
	answer := new(T)
	var pin runtime.Pinner
	pin.Pin(answer)
	defer pin.Unpin()
	args = append([]uintptr{d.handle}, args...)
	ret := d.lib.call(name, append(args, uintptr(unsafe.Pointer(answer)))...)
	return *answer, ret
}

// maxText is room for every text that NVML answers.
const maxText = 96

// textOf returns a text up to its NUL.
func textOf(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// Init starts the library; each Init needs a Shutdown.
func (l *Library) Init() Return { return l.call("Init") }

// Shutdown ends the library.
func (l *Library) Shutdown() Return { return l.call("Shutdown") }

// DriverVersion returns the driver's version, such as 580.95.05.
func (l *Library) DriverVersion() (string, Return) {
	var b [maxText]byte
	ret := l.call("SystemGetDriverVersion", uintptr(unsafe.Pointer(&b)), maxText)
	return textOf(b[:]), ret
}

// DeviceCount returns how many GPUs there are.
func (l *Library) DeviceCount() (int, Return) {
	var n uint32
	ret := l.call("DeviceGetCount", uintptr(unsafe.Pointer(&n)))
	return int(n), ret
}

// Device returns the GPU with an index.
func (l *Library) Device(index int) (Device, Return) {
	d := Device{lib: l}
	ret := l.call("DeviceGetHandleByIndex", uintptr(index), uintptr(unsafe.Pointer(&d.handle)))
	return d, ret
}

// UUID returns the device's id: GPU- or MIG- and a UUID.
func (d Device) UUID() (string, Return) { return d.text("DeviceGetUUID") }

// Name returns the device's model.
func (d Device) Name() (string, Return) { return d.text("DeviceGetName") }

func (d Device) text(name string) (string, Return) {
	var b [maxText]byte
	ret := d.lib.call(name, d.handle, uintptr(unsafe.Pointer(&b)), maxText)
	return textOf(b[:]), ret
}

// pciInfo is nvmlPciInfo_t.
type pciInfo struct {
	_     [16]byte
	_     [5]uint32
	BusID [32]byte
}

// Bus returns the PCI address as NVIDIA writes it: 00000000:3B:00.0.
func (d Device) Bus() (string, Return) {
	info, ret := get[pciInfo](d, "DeviceGetPciInfo")
	return textOf(info.BusID[:]), ret
}

// IsSliced reports whether MIG is enabled.
func (d Device) IsSliced() (bool, Return) {
	var current, pending uint32
	ret := d.lib.call("DeviceGetMigMode", d.handle, uintptr(unsafe.Pointer(&current)), uintptr(unsafe.Pointer(&pending)))
	return current == 1, ret
}

// MaxSlices returns how many slices the device can have.
func (d Device) MaxSlices() (int, Return) {
	n, ret := get[uint32](d, "DeviceGetMaxMigDeviceCount")
	return int(n), ret
}

// Slice returns the slice with an index, or NotFound.
func (d Device) Slice(index int) (Device, Return) {
	handle, ret := get[uintptr](d, "DeviceGetMigDeviceHandle", uintptr(index))
	return Device{d.lib, handle}, ret
}

// SliceID returns the id of a slice's GPU instance.
func (d Device) SliceID() (uint32, Return) { return get[uint32](d, "DeviceGetGpuInstanceId") }

// MaxLinks is the most NVLinks that a GPU has (NVML_NVLINK_MAX_LINKS).
const MaxLinks = 18

// LinkIsActive reports whether an NVLink is up.
func (d Device) LinkIsActive(link int) (bool, Return) {
	state, ret := get[uint32](d, "DeviceGetNvLinkState", uintptr(link))
	return state == 1, ret
}

// LinkRemoteBus returns the PCI address at an NVLink's other end.
func (d Device) LinkRemoteBus(link int) (string, Return) {
	info, ret := get[pciInfo](d, "DeviceGetNvLinkRemotePciInfo", uintptr(link))
	return textOf(info.BusID[:]), ret
}

// Memory is a device's memory in bytes. Reserved is what the driver keeps for itself; drivers before R510 count it as used, and it is 0.
type Memory struct{ Total, Reserved, Free, Used uint64 }

// memoryV1 is nvmlMemory_t.
type memoryV1 struct{ total, free, used uint64 }

// memoryV2 is nvmlMemory_v2_t.
type memoryV2 struct {
	version                     uint32
	total, reserved, free, used uint64
}

// Memory returns the device's memory.
func (d Device) Memory() (Memory, Return) {
	m := memoryV2{version: uint32(unsafe.Sizeof(memoryV2{})) | 2<<24}
	ret := d.lib.call("DeviceGetMemoryInfoV2", d.handle, uintptr(unsafe.Pointer(&m)))
	if !ret.IsAbsence() {
		return Memory{m.total, m.reserved, m.free, m.used}, ret
	}
	old, ret := get[memoryV1](d, "DeviceGetMemoryInfo")
	return Memory{Total: old.total, Free: old.free, Used: old.used}, ret
}

// Utilization is nvmlUtilization_t, in percent.
type Utilization struct{ GPU, Memory uint32 }

// Utilization returns how busy the device is. Slices and sliced devices don't know.
func (d Device) Utilization() (Utilization, Return) {
	return get[Utilization](d, "DeviceGetUtilizationRates")
}

// Temperature returns degrees Celsius.
func (d Device) Temperature() (uint32, Return) {
	const onDie = 0
	return get[uint32](d, "DeviceGetTemperature", onDie)
}

// Power returns milliwatts.
func (d Device) Power() (uint32, Return) { return get[uint32](d, "DeviceGetPowerUsage") }

// Clock is nvmlClockType_t.
type Clock uintptr

// The clocks that we read.
const (
	ClockSM     Clock = 1
	ClockMemory Clock = 2
)

// Clock returns MHz.
func (d Device) Clock(c Clock) (uint32, Return) {
	return get[uint32](d, "DeviceGetClockInfo", uintptr(c))
}

// Energy returns the millijoules used since the driver was loaded.
func (d Device) Energy() (uint64, Return) { return get[uint64](d, "DeviceGetTotalEnergy") }

// PCIeReplays returns how often something was sent again.
func (d Device) PCIeReplays() (uint32, Return) { return get[uint32](d, "DeviceGetPcieReplayCounter") }

// Encoder returns how busy the video encoder is, in percent.
func (d Device) Encoder() (uint32, Return) { return d.coder("DeviceGetEncoderUtilization") }

// Decoder returns how busy the video decoder is, in percent.
func (d Device) Decoder() (uint32, Return) { return d.coder("DeviceGetDecoderUtilization") }

func (d Device) coder(name string) (uint32, Return) {
	var percent, period uint32
	ret := d.lib.call(name, d.handle, uintptr(unsafe.Pointer(&percent)), uintptr(unsafe.Pointer(&period)))
	return percent, ret
}

// UncorrectedErrors counts memory errors since the driver was loaded that could not be corrected.
func (d Device) UncorrectedErrors() (uint64, Return) {
	const uncorrected, volatile = 1, 0
	return get[uint64](d, "DeviceGetTotalEccErrors", uncorrected, volatile)
}

// Remapped is what is known of remapped rows of memory.
type Remapped struct {
	Corrected, Uncorrected uint32
	Pending, Failed        bool
}

// RemappedRows returns what is known of remapped rows of memory.
func (d Device) RemappedRows() (Remapped, Return) {
	var corrected, uncorrected, pending, failed uint32
	ret := d.lib.call(
		"DeviceGetRemappedRows", d.handle, uintptr(unsafe.Pointer(&corrected)), uintptr(unsafe.Pointer(&uncorrected)),
		uintptr(unsafe.Pointer(&pending)), uintptr(unsafe.Pointer(&failed)),
	)
	return Remapped{corrected, uncorrected, pending != 0, failed != 0}, ret
}

// Field is the number of one of NVML's fields.
type Field uint32

// The fields that we read.
const (
	FieldMemoryTemperature Field = 82  // degrees Celsius
	FieldRecoveryAction    Field = 230 // nvmlDeviceGpuRecoveryAction_t; 0 is none
)

// fieldValue is nvmlFieldValue_t, whose value is a union.
type fieldValue struct {
	field, scope       uint32
	timestamp, latency int64
	valueType          uint32
	ret                Return
	value              uint32
	_                  uint32
}

// Field reads a field that is an unsigned integer.
func (d Device) Field(f Field) (uint32, Return) {
	v := fieldValue{field: uint32(f)}
	if ret := d.lib.call("DeviceGetFieldValues", d.handle, 1, uintptr(unsafe.Pointer(&v))); ret != Success {
		return 0, ret
	}
	return v.value, v.ret
}

// Events is a set of events that the driver reports.
type Events struct {
	lib *Library
	set uintptr
}

// eventData is nvmlEventData_t.
type eventData struct {
	device               uintptr
	kind, data           uint64
	instance, inInstance uint32
}

// Events returns a new set, to be freed.
func (l *Library) Events() (Events, Return) {
	e := Events{lib: l}
	ret := l.call("EventSetCreate", uintptr(unsafe.Pointer(&e.set)))
	return e, ret
}

// ReportErrors has the driver report a device's errors (XID) to a set.
func (d Device) ReportErrors(to Events) Return {
	const xidCriticalError = 8
	return d.lib.call("DeviceRegisterEvents", d.handle, xidCriticalError, to.set)
}

// Next returns the next event that has come: a device and the number of its error. If there is none it returns another Return than Success.
func (e Events) Next() (Device, uint64, Return) {
	var data eventData
	const dontWait = 0
	ret := e.lib.call("EventSetWait", e.set, uintptr(unsafe.Pointer(&data)), dontWait)
	return Device{e.lib, data.device}, data.data, ret
}

// Free ends the set.
func (e Events) Free() Return { return e.lib.call("EventSetFree", e.set) }
