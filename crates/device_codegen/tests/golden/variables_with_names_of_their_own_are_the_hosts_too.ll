@SCALE = global float 0.000000e+00, section ".nvvm.addrspace.4", align 4
@COUNT = global i32 1, section ".nvvm.addrspace.1", align 4
@TABLE = constant i32 7, align 4
@_ZN5crate5LOCAL17h0123456789abcdefE = global i32 2, align 4

define void @kernel(ptr %out) section ".nvvm.kernel" {
start:
  %scale = load float, ptr @SCALE, align 4
  store float %scale, ptr %out, align 4
  %count = load i32, ptr @COUNT, align 4
  store i32 %count, ptr %out, align 4
  %table = load i32, ptr @TABLE, align 4
  store i32 %table, ptr %out, align 4
  %local = load i32, ptr @_ZN5crate5LOCAL17h0123456789abcdefE, align 4
  store i32 %local, ptr %out, align 4
  ret void
}
