// Package fakecloudshell is a CloudShell server for tests: the part of its automation API ("TestShell
// XML-RPC", port 8029) that the reservation mutex needs, over real HTTP or HTTPS on the loopback
// interface. README.md says what is known about the real server. What is unknown is a field of
// [Policy].
//
// An [Injector] can give every request a [Fault]:
//
//	// the third is executed, and its reply is lost
//	server.Inject(fakecloudshell.At(fakecloudshell.AddService, 3, fakecloudshell.Fault{Reply: fakecloudshell.Dropped}))
package fakecloudshell
