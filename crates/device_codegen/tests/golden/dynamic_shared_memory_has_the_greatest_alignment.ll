; All kernels share the array, so that it has one address.

define void @tiles(ptr %out) section ".nvvm.kernel" {
start:
  %base = call noundef ptr @__nvvm_dynamic_shared(i32 noundef 1024)
  %v = load float, ptr %base, align 1024
  store float %v, ptr %out, align 4
  ret void
}

define void @words(ptr %out) section ".nvvm.kernel" {
start:
  %base = call noundef ptr @__nvvm_dynamic_shared(i32 noundef 16)
  %v = load float, ptr %base, align 4
  store float %v, ptr %out, align 4
  ret void
}

declare noundef ptr @__nvvm_dynamic_shared(i32 noundef) unnamed_addr
