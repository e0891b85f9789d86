package mongolab

// Start makes the server answer again after Stop, with the data that it had and
// under the same URI. Open has done it once.
func (s *Server) Start() error {
	s.changing.Lock()
	defer s.changing.Unlock()
	if s.address() != "" {
		return nil
	}
	if s.place.real != nil {
		s.setAddress(s.place.real.Host)
		return nil
	}
	embedded, err := embed(s.place.dir)
	if err != nil {
		return err
	}
	s.embedded = embedded
	s.setAddress(embedded.address)
	return nil
}

// Stop ends all connections, and refuses new ones until Start. Commands that are
// held up are not carried out. A real server behind the proxy runs on unseen.
//
// Neither an Injector nor a Pause may wait for it.
func (s *Server) Stop() {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.setAddress("")
	s.CutConnections()
	s.dropBackends()
	if s.embedded != nil {
		s.embedded.stop()
		s.embedded = nil
	}
}

// dropBackends ends the connections to the server behind the proxy, after the
// command that the embedded server works on.
func (s *Server) dropBackends() {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.backend.Close()
	}
}

func (s *Server) address() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.backend
}

func (s *Server) setAddress(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backend = address
}
