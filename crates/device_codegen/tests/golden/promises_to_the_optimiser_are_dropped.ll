; Assumptions, with what only they need; alias scopes; spin hints.

define void @kernel(ptr %out, i64 %n) section ".nvvm.kernel" {
start:
  %small = icmp ult i64 %n, 9
  call void @llvm.assume(i1 %small)
  call void @llvm.assume(i1 true) [ "align"(ptr %out, i64 16) ]
  call void @llvm.experimental.noalias.scope.decl(metadata !1)
  call void @llvm.x86.sse2.pause()
  store i64 %n, ptr %out, align 8, !alias.scope !1, !noalias !1
  ret void
}

declare void @llvm.assume(i1 noundef)

declare void @llvm.experimental.noalias.scope.decl(metadata)

declare void @llvm.x86.sse2.pause()

!0 = distinct !{!0, !2, !"scope"}
!1 = !{!0}
!2 = distinct !{!2, !"domain"}
