; Loads, stores, element pointers, stack slots, selections, phis, aggregates.

%Pair = type { i32, [4 x float] }

define void @kernel(ptr %a, ptr %b, i1 %c, i64 %i) section ".nvvm.kernel" {
start:
  %slot = alloca %Pair, align 4
  %chosen = select i1 %c, ptr %a, ptr %b
  br i1 %c, label %left, label %right

left:
  %field = getelementptr inbounds %Pair, ptr %chosen, i64 0, i32 1, i64 %i
  br label %right

right:
  %place = phi ptr [ %field, %left ], [ null, %start ]
  %fat = insertvalue { ptr, i64 } poison, ptr %place, 0
  %thin = extractvalue { ptr, i64 } %fat, 0
  %v = load float, ptr %thin, align 4
  store float %v, ptr %slot, align 4
  %next = load ptr, ptr %slot, align 8
  store ptr %next, ptr %a, align 8
  %byte = getelementptr inbounds i8, ptr %a, i64 3
  store i8 7, ptr %byte, align 1
  %address = ptrtoint ptr %byte to i64
  store i64 %address, ptr inttoptr (i64 64 to ptr), align 8
  ret void
}
