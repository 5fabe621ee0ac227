"""The paper's convex program: its problem, the solvers, the certificate, the bound for k, the encoding."""
