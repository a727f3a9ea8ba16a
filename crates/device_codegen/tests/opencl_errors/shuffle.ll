declare i32 @__nvvm_warp_shfl_idx_i32(i32, i32, i32, i32)
define void @refused(ptr %out) section ".nvvm.kernel" !dbg !0 {
start:
  %moved = call i32 @__nvvm_warp_shfl_idx_i32(i32 -1, i32 5, i32 0, i32 31), !dbg !3
  store i32 %moved, ptr %out, align 4
  ret void
}

!0 = distinct !DISubprogram(name: "kernel", file: !2, line: 3)
!2 = !DIFile(filename: "src/lib.rs", directory: "")
!3 = !DILocation(line: 5, column: 9, scope: !0)
