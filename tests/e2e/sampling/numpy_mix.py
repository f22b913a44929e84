"""Some seconds of CPU time of NumPy in a program of mpi4py, in C functions that have names."""
import sys
import time

import numpy
from mpi4py import MPI

matrix = numpy.random.default_rng(1).random((160, 160))
values = numpy.random.default_rng(2).random(200_000)
end = time.process_time() + float(sys.argv[1])
total = 0.0
while time.process_time() < end:
    total += (matrix @ matrix)[0, 0]
    total += numpy.sort(values)[0]
    total += numpy.cumsum(values)[-1]
print(MPI.COMM_WORLD.allreduce(total) > 0)
