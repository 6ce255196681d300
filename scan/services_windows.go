package scan

import (
	"context"
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
)

// systemManager is the service control manager. Any user may list its running services.
type systemManager struct {
	services map[int]string // names by PID; several services can share a process
	err      error
}

func newSystemManager(s *Snapshot) systemManager {
	services, err := runningServices()
	if err != nil {
		s.problem("the service control manager did not list its services: %v", err)
	}
	return systemManager{services, err}
}

func (m systemManager) known() bool { return m.err == nil }

func (m systemManager) job(p, _ *Process) (Service, supervised) {
	if m.err != nil {
		return Service{}, perhaps
	}
	name, ok := m.services[p.PID]
	if !ok {
		return Service{}, no
	}
	return Service{Manager: "windows", Name: name, MainPID: p.PID}, yes
}

// askManagers does nothing: the service control manager was asked by newSystemManager.
func askManagers(context.Context, *Snapshot, []*Process) {}

// runningServices returns the names of the running services by PID.
func runningServices() (map[int]string, error) {
	manager, err := windows.OpenSCManager(nil, nil, windows.SC_MANAGER_ENUMERATE_SERVICE)
	if err != nil {
		return nil, fmt.Errorf("OpenSCManager: %w", err)
	}
	defer windows.CloseServiceHandle(manager)
	services := make(map[int]string)
	// 256 KiB is the limit of the call, which then resumes where it stopped.
	buf := make([]byte, 256<<10)
	var needed, returned, resume uint32
	for {
		err := windows.EnumServicesStatusEx(manager, windows.SC_ENUM_PROCESS_INFO, windows.SERVICE_WIN32,
			windows.SERVICE_ACTIVE, &buf[0], uint32(len(buf)), &needed, &returned, &resume, nil)
		if err != nil && err != windows.ERROR_MORE_DATA {
			return nil, fmt.Errorf("EnumServicesStatusEx: %w", err)
		}
		found := unsafe.Slice((*windows.ENUM_SERVICE_STATUS_PROCESS)(unsafe.Pointer(&buf[0])), returned)
		for _, f := range found {
			if pid := int(f.ServiceStatusProcess.ProcessId); pid != 0 {
				services[pid] = windows.UTF16PtrToString(f.ServiceName)
			}
		}
		if err == nil {
			return services, nil
		}
	}
}
