package blockvolume

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const loopControl = "/dev/loop-control"

// maxRaces is how often another process may take the device that was free.
const maxRaces = 100

// mount mounts the file system in a file through a loop device, which goes with the mount. Devices don't count there.
func mount(image, fileSystem, at string) error {
	device, err := attach(image)
	if err != nil {
		return fmt.Errorf("attach it to a loop device: %w", err)
	}
	defer device.Close() //nolint:errcheck // without a mount, the loop device goes now
	if err := unix.Mount(device.Name(), at, fileSystem, unix.MS_NODEV, ""); err != nil {
		return fmt.Errorf("mount it as %s: %w", fileSystem, err)
	}
	return nil
}

// attach attaches a file to a free loop device, which is freed once nobody uses it.
func attach(image string) (*os.File, error) {
	f, err := os.OpenFile(image, os.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // the device has it
	control, err := os.OpenFile(loopControl, os.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer control.Close() //nolint:errcheck // nothing was written
	for range maxRaces {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, err
		}
		device, err := os.OpenFile(fmt.Sprintf("/dev/loop%d", n), os.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		config := &unix.LoopConfig{Fd: uint32(f.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}}
		copy(config.Info.File_name[:len(config.Info.File_name)-1], image)
		err = unix.IoctlLoopConfigure(int(device.Fd()), config)
		if err == nil {
			return device, nil
		}
		if err := errors.Join(err, device.Close()); !errors.Is(err, syscall.EBUSY) {
			return nil, err
		}
	}
	return nil, errors.New("other processes take all of them")
}
