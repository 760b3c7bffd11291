// The words of OpenCL C that CUDA C has others for: the script `gate` compiles the same sources as CUDA C.

#ifdef __OPENCL_VERSION__
#define KERNEL(lanes) __kernel __attribute__((reqd_work_group_size(lanes, 1, 1))) void
#define FUNCTION
#define GLOBAL __global
#define LOCAL __local
#define LOCAL_ARRAY __local
#define ALIGNED(bytes) __attribute__((aligned(bytes)))
#define LANE ((uint)get_local_id(0))
#define ITEM(axis) get_group_id(axis)
#define ITEMS(axis) get_num_groups(axis)
#define BITS(x) popcount(x)
#define NODE(a, b, c, d) ((uint4)(a, b, c, d))
#define PAIR(a, b) ((uint2)(a, b))
#define WIDE_PAIR(a, b) ((ulong2)(a, b))
#define TAKE(p) atomic_inc(p)
#define ADD(p, more) atomic_add(p, more)
#define HIGH_HALF(a, b) mul_hi(a, b)
#define WAIT_FOR_LANES() barrier(CLK_LOCAL_MEM_FENCE)
#else
typedef unsigned int uint;
typedef unsigned long ulong;
#define KERNEL(lanes) extern "C" __global__ void __launch_bounds__(lanes)
#define FUNCTION static __device__ __forceinline__
#define GLOBAL
#define LOCAL // a pointer finds the memory of its array
#define LOCAL_ARRAY __shared__
#define ALIGNED(bytes)
#define LANE threadIdx.x
#define ITEM(axis) (axis == 0 ? blockIdx.x : axis == 1 ? blockIdx.y : blockIdx.z)
#define ITEMS(axis) (axis == 0 ? gridDim.x : axis == 1 ? gridDim.y : gridDim.z)
#define BITS(x) __popc(x)
#define NODE(a, b, c, d) make_uint4(a, b, c, d)
#define PAIR(a, b) make_uint2(a, b)
#define WIDE_PAIR(a, b) make_ulong2(a, b)
#define TAKE(p) atomicAdd(p, 1u)
#define ADD(p, more) atomicAdd(p, more)
#define HIGH_HALF(a, b) __umul64hi(a, b)
#define WAIT_FOR_LANES() __syncthreads()
#endif
