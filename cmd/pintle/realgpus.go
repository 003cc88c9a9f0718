package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/pintle/pintle/internal/node/gpu"
	"github.com/pintle/pintle/internal/node/gpu/nvml"
	"github.com/pintle/pintle/internal/node/runtime"
)

// What --gpus may say.
const (
	gpusAuto     = "auto"
	gpusRequired = "required"
	gpusNone     = "none"
)

// realGPUs returns this machine's GPUs, reserved for this process. Those that containers can't have are not offered: every task with one
// would fail.
func (f nodeFlags) realGPUs(ctx context.Context, rt runtime.Runtime, log *slog.Logger) (gpu.Source, error) {
	if f.GPUs == gpusNone {
		return gpu.None{}, nil
	}
	source, err := f.findGPUs(ctx, log)
	if err == nil {
		err = checkGPUs(ctx, rt, source)
	}
	switch {
	case err == nil:
		return source, gpu.Claim(source.Devices())
	case f.GPUExporter != "" && source == nil:
		return nil, fmt.Errorf("--gpu-exporter: %v", err) // not wrapped, or report would say that no control plane answers
	case f.GPUs == gpusRequired:
		return nil, fmt.Errorf("--gpus required: %v", err) // as above
	case errors.Is(err, nvml.LibraryNotFound):
		log.Info("this machine offers no GPUs", "reason", err)
	default: // there is a driver, so somebody expects GPUs
		log.Warn("this machine offers no GPUs", "reason", err)
	}
	return gpu.None{}, nil
}

// findGPUs asks NVML for the GPUs, and where the flags name an exporter, that one for their load. It also stands in for NVML.
func (f nodeFlags) findGPUs(ctx context.Context, log *slog.Logger) (gpu.Source, error) {
	real, err := gpu.OpenNVML(log)
	switch {
	case f.GPUExporter == "" && err != nil:
		return nil, err
	case f.GPUExporter == "":
		return real, nil
	}
	var devices gpu.Source // nil lets the exporter list them
	if err == nil {
		devices = real
	}
	exported, err := gpu.NewDCGM(ctx, f.GPUExporter, devices, log)
	if err != nil {
		return nil, err
	}
	return exported, nil
}

// checkGPUs asks the runtime whether containers can have the GPUs.
func checkGPUs(ctx context.Context, rt runtime.Runtime, source gpu.Source) error {
	checker, ok := rt.(runtime.GPUChecker)
	if !ok {
		return nil
	}
	var ids []string
	for _, d := range source.Devices() {
		ids = append(ids, d.ID)
	}
	return checker.CheckGPUs(ctx, ids)
}
