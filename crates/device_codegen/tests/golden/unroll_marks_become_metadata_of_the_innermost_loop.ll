; A mark outside of any loop disappears; an opaque value becomes its operand.
; Other properties of a loop stay.

define void @kernel(ptr %out, i32 %n) section ".nvvm.kernel" {
start:
  %count = call noundef i32 @__nvvm_opaque_u32(i32 noundef 16)
  br label %outer

outer:
  %i = phi i32 [ 0, %start ], [ %i.next, %outer.latch ]
  br label %inner

inner:
  %j = phi i32 [ 0, %outer ], [ %j.next, %inner ]
  call void @__nvvm_unroll(i32 noundef 4)
  %place = getelementptr inbounds i32, ptr %out, i32 %j
  store i32 %i, ptr %place, align 4
  %j.next = add nuw i32 %j, 1
  %inner.done = icmp eq i32 %j.next, %count
  br i1 %inner.done, label %outer.latch, label %inner, !llvm.loop !0

outer.latch:
  call void @__nvvm_unroll(i32 noundef 1)
  %i.next = add nuw i32 %i, 1
  %outer.done = icmp eq i32 %i.next, %n
  br i1 %outer.done, label %end, label %outer

end:
  call void @__nvvm_unroll(i32 noundef 0)
  ret void
}

declare void @__nvvm_unroll(i32 noundef) unnamed_addr

declare noundef i32 @__nvvm_opaque_u32(i32 noundef) unnamed_addr

!0 = distinct !{!0, !1, !2}
!1 = !{!"llvm.loop.peeled.count", i32 1}
!2 = !{!"llvm.loop.unroll.disable"}
