//go:build !linux && !darwin && !windows

package scan

import "context"

// systemManager is none: no manager of this system can be asked.
type systemManager struct{}

func newSystemManager(*Snapshot) systemManager { return systemManager{} }

func (systemManager) known() bool { return false }

func (systemManager) job(_, _ *Process) (Service, supervised) { return Service{}, no }

func askManagers(context.Context, *Snapshot, []*Process) {}
