define void @kernel(ptr %out) section ".nvvm.kernel" {
start:
  call void @_RNvCsfLfy6EI15iL_7___rustc35___rust_no_alloc_shim_is_unstable_v2()
  %box = call noundef ptr @malloc(i64 noundef 8)
  store ptr %box, ptr %out, align 8
  call void @free(ptr noundef %box)
  call void @__assertfail(ptr %out, ptr %out, i32 3, ptr %out, i64 1)
  ret void
}

declare void @_RNvCsfLfy6EI15iL_7___rustc35___rust_no_alloc_shim_is_unstable_v2() unnamed_addr

declare noundef ptr @malloc(i64 noundef) unnamed_addr

declare void @free(ptr noundef) unnamed_addr

declare void @__assertfail(ptr, ptr, i32, ptr, i64) unnamed_addr
