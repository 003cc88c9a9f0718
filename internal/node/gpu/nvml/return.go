package nvml

import "strconv"

// Return is what every function returns (nvmlReturn_t). But for Success it's an error.
type Return uint32

// The returns on which somebody decides.
const (
	Success          Return = 0
	NotSupported     Return = 3
	NoPermission     Return = 4
	NotFound         Return = 6
	DriverNotLoaded  Return = 9
	Timeout          Return = 10
	LibraryNotFound  Return = 12
	FunctionNotFound Return = 13
	GPUIsLost        Return = 15
	ResetRequired    Return = 16
	Unknown          Return = 999
)

// texts say what a Return means.
var texts = map[Return]string{
	Success:          "success",
	1:                "the library was not initialized",
	2:                "an argument is invalid",
	NotSupported:     "not supported",
	NoPermission:     "no permission",
	NotFound:         "not found",
	8:                "a power cable is missing",
	DriverNotLoaded:  "the driver is not loaded",
	Timeout:          "time-out",
	11:               "an interrupt of the GPU's does not arrive",
	LibraryNotFound:  "the library " + Name + " of NVIDIA's driver can't be loaded",
	FunctionNotFound: "this driver does not have the function",
	14:               "the GPU's inforom is corrupted",
	GPUIsLost:        "the GPU is lost",
	ResetRequired:    "the GPU has to be reset",
	17:               "the operating system blocks the GPU",
	18:               "the driver in the kernel and the library have different versions",
	20:               "too little memory",
	23:               "too few resources",
	27:               "not ready",
	28:               "no GPU was found",
	Unknown:          "unknown error of the driver",
}

// Error says what it means, with NVML's number.
func (r Return) Error() string {
	number := "NVML error " + strconv.FormatUint(uint64(r), 10)
	if text := texts[r]; text != "" {
		return text + " (" + number + ")"
	}
	return number
}

// IsAbsence reports whether a device or driver merely lacks a value, and is none the worse for it.
func (r Return) IsAbsence() bool {
	return r == NotSupported || r == FunctionNotFound || r == NoPermission || r == NotFound
}
