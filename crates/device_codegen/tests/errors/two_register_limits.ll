define void @kernel() section ".nvvm.kernel" {
start:
  call void @__nvvm_max_registers(i32 64)
  call void @__nvvm_max_registers(i32 128)
  ret void
}
declare void @__nvvm_max_registers(i32)
