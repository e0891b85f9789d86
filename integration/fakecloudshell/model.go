package fakecloudshell

import (
	"maps"
	"slices"
)

// User is somebody who can log on.
type User struct {
	Name     string
	Password string
	Admin    bool
	// Domains are those where the user may log on; Global by default.
	Domains []string
}

// DefaultDomain is the domain that every installation has.
const DefaultDomain = "Global"

// Model is a kind of service.
type Model struct {
	Name       string
	Family     string
	AdminOnly  bool // hidden from other users; see Policy.ProtectAdminModels
	Attributes []Attribute
}

// Attribute is an attribute of a model, and what it is where nobody sets it.
type Attribute struct{ Name, Default string }

// The reservation mutex, as its convention names things.
const (
	MutexAlias     = "MUTEX"
	MutexModel     = "Mutex Service"
	MutexFamily    = "Mutex Service Family"
	OwnerAttribute = "Mutex Owner"
)

// PlainMutex is the model of the convention as it is: there is no owner.
func PlainMutex() Model {
	return Model{Name: MutexModel, Family: MutexFamily, AdminOnly: true}
}

// OwnedMutex is the model of the convention's first version: it has an owner.
func OwnedMutex() Model {
	model := PlainMutex()
	model.Attributes = []Attribute{{Name: OwnerAttribute}}
	return model
}

func (m Model) has(attribute string) bool {
	return slices.ContainsFunc(m.Attributes, func(a Attribute) bool { return a.Name == attribute })
}

// Reservation is a place for services; users call it a sandbox.
type Reservation struct {
	ID     string
	Name   string
	Domain string // Global by default
	// Owner and Permitted may use it, and administrators.
	Owner     string
	Permitted []string
	// Services are there from the start, as in a sandbox made from a blueprint that
	// was saved with them.
	Services []Service
}

// Service is a service in a reservation.
type Service struct {
	Model      string
	Alias      string
	Attributes map[string]string
	// What SetServiceLiveStatus said last.
	LiveStatus, LiveStatusInfo string
}

func (s Service) clone() Service {
	attributes := map[string]string{}
	maps.Copy(attributes, s.Attributes)
	s.Attributes = attributes
	return s
}

func cloneServices(services []Service) []Service {
	copied := make([]Service, len(services))
	for i, s := range services {
		copied[i] = s.clone()
	}
	return copied
}
