"""stdio: a server on two file descriptors, and a server as a child process."""
